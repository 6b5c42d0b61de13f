//! The ID server: one node behind HTTP, gRPC and RESP.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use frazil_server::{App, Config};
//!
//! let app = App::bind(Config::default()).await?;
//! println!("http://{}", app.addrs().http.ok_or("HTTP is on by default")?);
//! app.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The way of a request: `http`, `grpc` or `resp` translate it; `policy::access` knows who it is; `policy::admission`
//! decides (role, scope, count, quota); the node picks a lane, or `policy::queue` when there are no IDs; an encoder
//! writes the answer. Nothing on that way takes a lock or asks the store while there are IDs.

mod app;
mod cluster;
mod config;
mod encode;
mod endpoints;
mod grpc;
mod http;
mod issuer;
mod metrics;
mod net;
mod node;
mod policy;
mod resp;
mod toml_problem;

pub use self::app::{Addrs, App, BindError, DESCRIPTORS_KEPT, RunError};
pub use self::app::{Exposed, Reloader, Secrecy, exposed};
pub use self::cluster::admin_address::{AdminAddress, is_loopback};
pub use self::cluster::peers::PeersError;
pub use self::cluster::scopes::{DeclaredScope, check_scopes};
pub use self::config::rules::{ConfigError, ConfigProblem};
pub use self::config::{Config, LaneCount, Limits, TlsFiles};
pub use self::endpoints::{Endpoint, endpoints};
pub use self::net::certificate::Validity;
pub use self::net::proxies::AddressRange;
pub use self::net::serve_threads::default_threads;
pub use self::net::tls::TlsError;
pub use self::node::condition::{Condition, NodeState};
pub use self::policy::access::Permission;
pub use self::policy::keys;
#[doc(hidden)]
pub use self::toml_problem::toml_problem;

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
