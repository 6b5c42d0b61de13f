//! IDs from Frazil servers.
//!
//! | to | see |
//! |---|---|
//! | get IDs | [`Client::next`], [`Client::try_next`], [`Client::batch`] |
//! | do so without a runtime (feature `blocking`) | [`blocking::Client`] |
//! | choose servers, a scope, a key, authorities, times and sizes | [`Builder`], [`Client::from_env`] |
//! | take IDs apart and bound time ranges, offline | [`Client::decode`], [`Client::range`] |
//! | learn the other servers of a cluster from one, and prefer those nearby | [`Builder::discover`], [`Builder::zone`] |
//! | ask a server something else | [`Client::ask`] |
//! | know why a call failed, and whether to try again | [`Error`] |
//! | watch it work | [`Stats`], [`Observer`] |
//! | test a program without a server (feature `testing`) | `testing::FakeServer` |
//!
//! An ID is handed out once, whatever happens: an answer is used whole or not at all, must repeat
//! the nonce of its request, and a forked child drops what its parent had fetched. What stays is a
//! machine that is copied while it runs, memory and all: there, use `prefetch(0)`.
//!
//! Features: `blocking` and `tls` by default, `grpc`, and `testing`.

mod ask;
#[doc(hidden)]
pub mod between_nodes;
#[cfg(feature = "blocking")]
pub mod blocking;
mod budget;
mod builder;
mod call;
mod client;
mod clock;
mod count_limit;
mod discovery;
mod endpoint;
mod error;
mod fetch;
#[cfg(feature = "grpc")]
mod grpc;
mod health;
mod host;
mod hosts;
mod http;
mod inner;
mod link;
mod observer;
mod pool;
mod reply;
mod retry_after;
mod secret;
mod server_info;
mod sizing;
mod state;
mod stats;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
mod waiters;

pub use frazil_id::{Format, Id, Layout, ParseIdError, Parts};
pub use frazil_wire::{ApiError, Reason};

pub use self::ask::{Answer, Ask};
pub use self::builder::Builder;
pub use self::client::Client;
pub use self::error::Error;
pub use self::observer::{Event, Observer};
pub use self::server_info::ServerInfo;
pub use self::stats::Stats;

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
