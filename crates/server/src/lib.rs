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
//! The way of a request: `http`, `grpc` or `resp` translate it; `access` knows who it is; `admission` decides (role,
//! scope, count, quota); the node picks a lane, or the `queue` when there are no IDs; an encoder writes the answer.
//! Nothing on that way takes a lock or asks the store while there are IDs.

mod access;
mod admission;
mod app;
mod attempts;
mod audit;
mod certificate;
mod cluster;
mod condition;
mod config;
mod connection_limits;
mod decode;
mod der;
mod drain;
mod duties;
mod elections;
mod encode;
mod endpoints;
mod grpc;
mod http;
mod in_flight;
mod info;
mod issuer;
pub mod keys;
mod listener;
mod metrics;
mod monitor;
mod open;
mod peek;
mod peers;
mod poll_on_wake;
mod proxies;
mod queue;
mod reload;
mod remote;
mod replicas;
mod request_id;
mod resp;
mod scaling;
mod scopes;
mod serve_threads;
mod stream;
mod tls;
mod validity;

pub use self::access::Need;
pub use self::app::{Addrs, App, BindError, DESCRIPTORS_KEPT, RunError};
pub use self::condition::{Condition, NodeState};
pub use self::config::rules::{ConfigError, ConfigProblem};
pub use self::config::{Config, LaneCount, Limits, TlsFiles};
pub use self::endpoints::{Endpoint, endpoints};
pub use self::peers::{PeerSettings, PeerWarning, PeersError};
pub use self::proxies::AddressRange;
pub use self::reload::{Exposed, Reloader, Secrecy, exposed};
pub use self::scopes::{DeclaredScope, check_scopes};
pub use self::serve_threads::default_threads;
pub use self::tls::TlsError;
pub use self::validity::Validity;
