//! ZooKeeper: one server, alone or in an ensemble.

mod builder;
mod ensemble;
mod server;

pub use builder::ZooKeeperBuilder;
pub use ensemble::ZooKeeperEnsemble;
pub use server::ZooKeeper;
