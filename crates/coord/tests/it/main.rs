//! The stores and the lease engine: the contract on real servers, faults, and the keeper.

#[cfg(feature = "etcd")]
mod etcd;
mod faulty;
mod file;
mod file_faults;
mod keeper;
mod memory;
mod naive;
#[cfg(feature = "redis")]
mod redis;
mod watching;
mod wrappers;
#[cfg(feature = "zookeeper")]
mod zookeeper;
