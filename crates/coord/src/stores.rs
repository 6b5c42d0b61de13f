//! The stores that come with the crate.

#[cfg(feature = "etcd_")]
pub mod etcd;
pub mod file;
pub mod memory;
#[cfg(feature = "redis_")]
pub mod redis;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;
