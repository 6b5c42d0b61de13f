//! etcd: one member, alone or in a cluster.

mod builder;
mod cluster;
mod member;

pub use builder::EtcdBuilder;
pub use cluster::EtcdCluster;
pub use member::Etcd;
