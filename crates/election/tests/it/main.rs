//! Elections, jobs and fences on every store, and the examples.

#[cfg(all(feature = "redis", feature = "etcd", feature = "zookeeper"))]
mod election;
mod examples;
mod fence;
#[cfg(all(feature = "redis", feature = "etcd", feature = "zookeeper"))]
mod processor;
#[cfg(all(feature = "redis", feature = "etcd", feature = "zookeeper"))]
mod stage;
