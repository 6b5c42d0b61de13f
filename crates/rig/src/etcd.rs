//! etcd: one member, alone or in a cluster, and its own proxy.

mod builder;
mod cluster;
mod grpc_proxy;
mod member;

pub use builder::EtcdBuilder;
pub use cluster::EtcdCluster;
pub use grpc_proxy::EtcdGrpcProxy;
pub use member::Etcd;
