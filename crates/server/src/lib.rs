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
//! The way of a request: `http`, `grpc` or `resp` translate it; the `issuer` decides (count, scope,
//! deadline, turn); the node picks a lane; an encoder writes the answer. Nothing on that way takes
//! a lock or asks the store while there are Ids.

mod access;
mod app;
mod aside;
mod cluster;
mod condition;
mod config;
mod crew;
mod drain;
mod duties;
mod elections;
mod encode;
mod endpoints;
mod grpc;
mod http;
mod in_flight;
mod issuer;
pub mod keys;
mod listener;
mod metrics;
mod monitor;
mod open;
mod peers;
mod places;
mod reload;
mod replicas;
mod resp;
mod scaling;
mod scopes;
mod self_portrait;
mod stream;
mod tls;
mod validity;

pub use self::access::Need;
pub use self::app::{Addrs, App, BindError, DESCRIPTORS_KEPT, RunError};
pub use self::condition::{Condition, NodeState};
pub use self::config::{Config, LaneCount, Limits, TlsFiles};
pub use self::crew::default_threads;
pub use self::endpoints::{Endpoint, endpoints};
pub use self::peers::PeersError;
pub use self::reload::Reloader;
pub use self::scopes::{DeclaredScope, check_scopes};
pub use self::tls::TlsError;
pub use self::validity::Validity;
