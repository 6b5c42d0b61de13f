//! The stores that come with the crate.

#[cfg(feature = "etcd")]
pub mod etcd;
pub mod file;
pub mod memory;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;
