//! A thin client of etcd: transactions, leases and watches over a connection to one member.
//!
//! Requests are etcd's own messages, and what fails is a gRPC [`Status`] with its code and its
//! cause. The client logs in, and does so again when etcd does not know the login any more. It has
//! no other policy: which member is asked, how long an answer is waited for and what is tried again
//! are up to the caller.
//!
//! ```no_run
//! use frazil_etcd::{Client, Compare, CompareResult, Config, RequestOp, TxnRequest};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let etcd = Client::new("127.0.0.1:2379", &Config::default())?;
//! let answer = etcd
//!     .txn(&TxnRequest {
//!         compare: vec![Compare::create_revision("color", CompareResult::Equal, 0)],
//!         success: vec![RequestOp::put("color", "white")],
//!         failure: vec![RequestOp::get("color")],
//!     })
//!     .await?;
//! println!("{}", if answer.succeeded { "written" } else { "there already" });
//! # Ok(())
//! # }
//! ```

mod client;
mod config;
mod proto;
mod session;
mod txn;
mod watch;

pub use tonic::transport::{Certificate, ClientTlsConfig, Identity};
pub use tonic::{Code, Status};

pub use client::Client;
pub use config::{Config, ConfigError, Login, Ping};
pub use proto::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
pub use proto::etcdserverpb::request_op::Request as Operation;
pub use proto::etcdserverpb::response_op::Response as OperationResponse;
pub use proto::etcdserverpb::watch_create_request::FilterType;
pub use proto::etcdserverpb::{
    Compare, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest,
    RangeResponse, RequestOp, ResponseHeader, ResponseOp, StatusResponse, TxnRequest, TxnResponse,
    WatchCreateRequest,
};
pub use proto::mvccpb::event::EventType;
pub use proto::mvccpb::{Event, KeyValue};
pub use watch::Watch;

/// The page of the crate, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
