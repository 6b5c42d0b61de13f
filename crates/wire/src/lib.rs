//! The messages of Frazil on the network.
//!
//! | to | see |
//! |---|---|
//! | know every error, and how HTTP, gRPC and RESP write it | [`Reason`], [`ApiError`] |
//! | read and write the JSON objects | [`IdsReply`], [`Decoded`], [`Info`], [`Cluster`], [`Elections`], [`Drained`], [`Rotated`], [`Problem`] |
//! | write a value into a query | [`query_value`] |
//! | show text that others wrote, counts, durations and times | [`printable()`], [`words`] |
//! | call or serve gRPC (feature `grpc`) | `proto` |
//! | check another implementation | the files in `vectors/` |
//!
//! Objects are read from servers of other versions: unknown fields are ignored, and a field may be missing unless the
//! answer means nothing without it (a name, a token) or a default would be taken at its word (a limit, a layout).

mod api_error;
mod cluster;
mod decoded;
mod elections;
mod ids_reply;
mod info;
mod printable;
mod problem;
#[cfg(feature = "grpc")]
pub mod proto;
mod query;
mod reason;
mod scopes;
#[cfg(feature = "grpc")]
mod status;
mod verbs;
pub mod words;

pub use self::api_error::ApiError;
pub use self::cluster::{Cluster, ClusterNode, WorkerCounts};
pub use self::decoded::Decoded;
pub use self::elections::{Election, Elections, Leader};
pub use self::ids_reply::{IdsReply, Metadata};
pub use self::info::{
    ClockInfo, Info, LaneInfo, LayoutInfo, Limits, NodeInfo, Promises, StoreInfo,
};
pub use self::printable::printable;
pub use self::problem::Problem;
pub use self::query::query_value;
pub use self::reason::{Reason, UnknownReason};
pub use self::scopes::{ScopeInfo, ScopeKind, ScopeLeader};
pub use self::verbs::{Drained, Moved, Rotated};

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
