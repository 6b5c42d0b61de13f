//! What a server is told before it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use frazil::Builder;

use crate::crew::default_threads;

/// Everything that can be said about a server. The defaults serve one lane of the file store under
/// the state directory, on loopback only.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node: store, namespace, layout, workers, timing. Its lanes are set below.
    pub node: Builder,
    /// How the node is called; unique among its peers.
    pub name: String,
    /// Where it stands, if that matters.
    pub region: Option<String>,
    /// Where others reach it, if they should know.
    pub advertise: Option<String>,
    /// Where HTTP listens, if it does; port 0 takes a free one.
    pub http: Option<SocketAddr>,
    /// Where gRPC listens.
    pub grpc: Option<SocketAddr>,
    /// Where RESP listens.
    pub resp: Option<SocketAddr>,
    /// Threads that serve HTTP and RESP, each with connections of its own; 0 for those of the
    /// runtime that the server runs on.
    pub threads: usize,
    /// How many lanes to run.
    pub lanes: LaneCount,
    /// The scopes that may be named.
    pub scopes: Vec<String>,
    /// What requests may ask for.
    pub limits: Limits,
    /// How long balancers have to notice that the node is going, before it stops accepting.
    pub drain_delay: Duration,
    /// How long requests in flight have to finish then.
    pub drain_timeout: Duration,
    /// A node that has refused for this long shuts itself down.
    pub refusal_limit: Duration,
}

/// How many lanes a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneCount {
    /// Always so many.
    Fixed(usize),
    /// One, and more while their sequences are used up.
    Auto,
}

/// What requests may ask for, each with the reason for its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Ids of one request: 100,000 are 25 ms of the default layout, and a few megabytes.
    pub max_count: u32,
    /// How long a request waits for Ids: as long as a user waits for a page.
    pub max_wait: Duration,
    /// Bytes of a body: the largest one holds Ids to decode.
    pub max_body_bytes: usize,
    /// Requests that wait for Ids at a time: beyond it they are told to go elsewhere at once.
    pub max_waiting: usize,
    /// Connections of one protocol: each costs a few kilobytes and a file descriptor.
    pub max_connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_count: 100_000,
            max_wait: Duration::from_secs(2),
            max_body_bytes: 1 << 20,
            max_waiting: 16_384,
            max_connections: 10_000,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let loopback = |port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Self {
            node: frazil::Node::builder(),
            name: default_name(),
            region: None,
            advertise: None,
            http: loopback(7780),
            grpc: loopback(7781),
            resp: loopback(7782),
            threads: default_threads(),
            lanes: LaneCount::Fixed(1),
            scopes: Vec::new(),
            limits: Limits::default(),
            drain_delay: Duration::from_millis(500),
            drain_timeout: Duration::from_secs(10),
            refusal_limit: Duration::from_mins(10),
        }
    }
}

/// The host and the process: unique among nodes that run at a time.
fn default_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}:{}", std::process::id())
}
