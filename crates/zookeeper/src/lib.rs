//! A thin client of ZooKeeper: sessions, multis, ephemeral nodes and persistent watches.
//!
//! It is the part of ZooKeeper's protocol that Frazil's store needs. One task has the connection;
//! requests are sent in the order of the calls, many at a time. A connection that is lost is made
//! again, to any of the servers, for as long as the session can be alive. The client repeats no
//! request: whether one whose answer is missing was carried out is not known, and
//! [`Error::ConnectionLoss`] says so.
//!
//! ```no_run
//! use frazil_zookeeper::{Acl, Client, Config, CreateMode, Op, Permissions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let zookeeper = Client::connect(&Config::new([("127.0.0.1".to_owned(), 2181)])).await?;
//! let (_, stat) = zookeeper.get_data("/color").await?;
//! zookeeper
//!     .multi(&[
//!         Op::set_data("/color", "white", Some(stat.version)),
//!         Op::create("/color/painter", "me", CreateMode::Ephemeral, [Acl::anyone(Permissions::ALL)]),
//!     ])
//!     .await?;
//! # Ok(())
//! # }
//! ```

mod client;
mod config;
mod connection;
mod driver;
mod error;
mod jute;
mod link;
mod multi;
mod node;
mod request;
mod session;
mod watch;

pub use tokio_rustls::rustls::ClientConfig;

pub use client::Client;
pub use config::{Config, Login};
pub use error::{Error, HostFailure, Stage};
pub use multi::{Get, GetResult, MultiError, Op, OpResult};
pub use node::{Acl, CreateMode, Permissions, Stat};
pub use session::{Session, SessionId, State};
pub use watch::{Event, Watch};

/// The page of the crate, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
