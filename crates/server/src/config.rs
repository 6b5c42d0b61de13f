//! The configuration of a server.

mod named_files;
pub(crate) mod rules;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use frazil::Builder;

use crate::cluster::scopes::DeclaredScope;
use crate::net::proxies::AddressRange;
use crate::net::serve_threads::default_threads;
use crate::policy::keys::KeySource;

/// Everything that can be said about a server. The defaults serve one lane of the file store under
/// the state directory, on loopback only.
///
/// To change them, make the defaults and set fields: `let mut config = Config::default()`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The node: store, namespace, layout, workers, timing. Its lanes are set below.
    pub node: Builder,
    /// How the node is called; unique among its peers.
    pub name: String,
    /// Where it stands, if that matters.
    pub region: Option<String>,
    /// In which zone of it: clients ask nodes of their own zone first.
    pub zone: Option<String>,
    /// Where others reach it, if they should know.
    pub advertise: Option<String>,
    /// Where HTTP listens, if it does; port 0 takes a free one.
    pub http: Option<SocketAddr>,
    /// Where gRPC listens.
    pub grpc: Option<SocketAddr>,
    /// Where RESP listens.
    pub resp: Option<SocketAddr>,
    /// Where the verbs for administrators are served, if apart from the rest.
    pub admin: Option<SocketAddr>,
    /// Proxies that may name the client for whom they connect: by the PROXY protocol on every listener, by
    /// `Forwarded` or `X-Forwarded-For` on those of HTTP and gRPC.
    pub trusted_proxies: Vec<AddressRange>,
    /// The certificate of all listeners; without it they speak plainly.
    pub tls: Option<TlsFiles>,
    /// Where the API keys are; without any whoever connects may do everything but administer.
    pub keys: Option<KeySource>,
    /// Show metrics to those without a key.
    pub open_metrics: bool,
    /// Listen on addresses that others can reach although there is no TLS or are no keys.
    pub insecure: bool,
    /// Threads that serve HTTP and RESP, each with connections of its own; 0 for those of the
    /// runtime that the server runs on.
    pub threads: usize,
    /// How many lanes to run.
    pub lanes: LaneCount,
    /// The scopes that may be named.
    pub scopes: Vec<DeclaredScope>,
    /// Who leads a strict scope, or the cluster, is replaced after so long without a word.
    pub election_ttl: Duration,
    /// The file with the key that is shown to other nodes.
    pub peer_key_file: Option<PathBuf>,
    /// The authorities that other nodes' certificates must come from, as PEM.
    pub peer_ca: Option<PathBuf>,
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

/// Where the certificate of the listeners is, and whose clients it is shown to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The certificate and those that lead to its authority, as PEM.
    pub cert: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// The authorities whose certificates clients must show, as PEM; without them clients need
    /// none.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    /// A certificate and its key, which are shown to all clients.
    #[must_use]
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { cert: cert.into(), key: key.into(), client_ca: None }
    }

    /// These, with the authorities whose certificates clients must show.
    #[must_use]
    pub fn with_client_ca(mut self, client_ca: impl Into<Option<PathBuf>>) -> Self {
        self.client_ca = client_ca.into();
        self
    }
}

/// What connections and requests may take, each with the reason for its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// IDs of one request: 100,000 are 25 ms of the default layout, and a few megabytes.
    pub max_count: u32,
    /// How long a request waits for IDs: as long as a user waits for a page.
    pub max_wait: Duration,
    /// Bytes of a body: the largest one holds IDs to decode.
    pub max_body_bytes: usize,
    /// Bytes of a request's head, all headers together: real ones have a few hundred.
    pub max_head_bytes: usize,
    /// Bytes of a path with its query: the longest holds a layout's text.
    pub max_uri_bytes: usize,
    /// Headers of a request: browsers and proxies send about thirty.
    pub max_headers: usize,
    /// Requests that wait for IDs at a time: beyond it they are told to go elsewhere at once.
    pub max_waiting: usize,
    /// HTTP and gRPC requests that are answered at a time: each takes memory.
    pub max_in_flight: usize,
    /// Connections of one protocol: each costs a few kilobytes and a file descriptor.
    pub max_connections: usize,
    /// Connections of one protocol from one address: nobody takes all places. A proxy in front
    /// needs more, unless it is trusted to say for whom it speaks.
    pub max_connections_per_peer: usize,
    /// Wrong keys from one address within a minute: beyond it none of that address is looked at for
    /// a while. Somebody who mistypes needs a few.
    pub max_failed_keys: u32,
    /// HTTP/2 streams of one connection at a time: a client that wants more opens another one.
    pub max_streams: u32,
    /// HTTP/2 streams that a client reset before they were looked at; more end the connection.
    pub max_resets: usize,
    /// Bytes of a RESP command with all its arguments: tools ask about a few hundred names.
    pub max_command_bytes: usize,
    /// RESP commands of one connection that are answered before others have their turn.
    pub max_pipeline: usize,
    /// How long a TLS handshake may take, and the header of a proxy before it: two round trips and a little work.
    pub handshake_timeout: Duration,
    /// How long a RESP or gRPC connection may take to show a key, where one is needed: clients do
    /// so at once, and whoever does not holds a place for nothing.
    pub auth_timeout: Duration,
    /// How long the head of a request may take from its first byte on, and half a RESP command.
    pub head_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// How long a client may take to read an answer: what it does not read is memory.
    pub write_timeout: Duration,
    /// How long an HTTP connection is kept without a request.
    pub idle_timeout: Duration,
    /// How long a RESP connection is kept without a command; for ever if it is zero, as with
    /// Redis: its clients keep pools of them.
    pub resp_idle_timeout: Duration,
    /// How long a request that asks the store may take.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_count: 100_000,
            max_wait: Duration::from_secs(2),
            max_body_bytes: 1 << 20,
            max_head_bytes: 16 * 1024,
            max_uri_bytes: 8 * 1024,
            max_headers: 100,
            max_waiting: 16_384,
            max_in_flight: 16_384,
            max_connections: 10_000,
            max_connections_per_peer: 4_000,
            max_failed_keys: 10,
            max_streams: 100,
            max_resets: 20,
            max_command_bytes: 256 * 1024,
            max_pipeline: 1_000,
            handshake_timeout: Duration::from_secs(5),
            auth_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            resp_idle_timeout: Duration::ZERO,
            request_timeout: Duration::from_secs(10),
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
            zone: None,
            advertise: None,
            http: loopback(7780),
            grpc: loopback(7781),
            resp: loopback(7782),
            admin: None,
            trusted_proxies: Vec::new(),
            tls: None,
            keys: None,
            open_metrics: false,
            insecure: false,
            threads: default_threads(),
            lanes: LaneCount::Fixed(1),
            scopes: Vec::new(),
            election_ttl: Duration::from_secs(10),
            peer_key_file: None,
            peer_ca: None,
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
