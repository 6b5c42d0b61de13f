//! Real servers for tests, and a TCP proxy that misbehaves.
//!
//! Each server is a child process on free loopback ports with a throw-away directory. It is
//! stopped by its process id when its value is dropped, and by the kernel if the test process dies
//! before that (see [`Redis`] for the shortest example). Their directories go too, however the
//! process ends. Nothing here is fit for production.
//!
//! | Item | What it starts |
//! |---|---|
//! | [`Redis`], [`Sentinels`], [`RedisCluster`] | `redis-server`, `redis-sentinel` |
//! | [`Etcd`], [`EtcdCluster`], [`EtcdGrpcProxy`] | `etcd` |
//! | [`ZooKeeper`], [`ZooKeeperEnsemble`] | `java` with Debian's ZooKeeper |
//! | [`Daemon`], [`Recipe`] | what all of these can be made to do: die, stop, go on; any other program |
//! | [`Proxy`] | threads that forward, hold back, lose or delay what passes |
//! | [`Certificates`] | a CA with a server's and a client's certificate, and an unrelated CA |
//! | [`FalseClock`] | a C compiler; then a clock that can be set without being root |
//! | [`Corpus`] | inputs that nobody would write, for parsers |
//! | [`SmallDisk`] | a tmpfs that is soon full |
//! | [`wait_until`] | the one place that polls |

mod certificates;
mod daemon;
mod directory;
mod etcd;
mod false_clock;
mod fuzzing;
mod nursery;
mod ports;
mod process;
mod program;
mod proxy;
mod redis;
mod small_disk;
mod waiting;
mod zookeeper;

pub use certificates::Certificates;
pub use daemon::Daemon;
pub use etcd::{Etcd, EtcdBuilder, EtcdCluster, EtcdGrpcProxy};
pub use false_clock::FalseClock;
pub use fuzzing::{Broken, Corpus};
pub use ports::free_port;
pub use process::Recipe;
pub use proxy::Proxy;
pub use redis::{AppendOnly, Redis, RedisBuilder, RedisCluster, Sentinels};
pub use small_disk::{SmallDisk, full_disk};
pub use waiting::wait_until;
pub use zookeeper::{ZooKeeper, ZooKeeperBuilder, ZooKeeperEnsemble};
