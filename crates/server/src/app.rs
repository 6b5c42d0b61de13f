//! A server from its listeners to its end.

mod bind_error;
mod run_error;

use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use frazil::StartError;
use frazil::coord::Scheme;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

pub use self::bind_error::BindError;
pub use self::run_error::RunError;
use crate::access::{Door, Gate};
use crate::certificate::Certificate;
use crate::cluster::{ClusterCache, LISTEN};
use crate::condition::{Condition, NodeState};
use crate::config::{Config, LaneCount};
use crate::connection_limits::{ADMIN_CONNECTIONS, AllConnectionLimits, SPARE_DESCRIPTORS};
use crate::drain::Shutdown;
use crate::duties::StaleSlots;
use crate::elections::NodeElections;
use crate::encode::JsonFrame;
use crate::in_flight::InFlight;
use crate::issuer::Issuer;
use crate::keys::follow::{self, Followed};
use crate::keys::{self, KeyEntry, KeySource, Keyring};
use crate::listener::Remote;
use crate::metrics::{Metrics, Seen};
use crate::monitor::{End, note_change};
use crate::peers::{PeerSettings, PeerWarning};
use crate::proxies::TrustedProxies;
use crate::reload::{self, NamedFiles, Reloader};
use crate::replicas::{self, MissingReplicas};
use crate::scopes::{ADVERTISE, Scopes, check_scopes};
use crate::serve_threads::ServeThreads;
use crate::stream::Stream;
use crate::tls::{NoHandshake, Speech, Tls};
use crate::{elections, grpc, http, monitor, open, resp, scaling};

/// Connections that wait to be accepted, if the kernel allows as many (`net.core.somaxconn`). Of more than that the
/// kernel drops some, and their clients try again after a second: all clients of a node that failed come at once.
const BACKLOG: u32 = 4096;
/// File descriptors that the connections of the three protocols leave alone: for the store, the
/// files, the log, probes and administrators.
pub const DESCRIPTORS_KEPT: usize = 64 + ADMIN_CONNECTIONS + 4 * SPARE_DESCRIPTORS;

/// A server that listens and does not serve yet.
#[derive(Debug)]
pub struct App {
    config: Config,
    http: Option<TcpListener>,
    grpc: Option<TcpListener>,
    resp: Option<TcpListener>,
    admin: Option<TcpListener>,
    addrs: Addrs,
    threads: Arc<ServeThreads>,
    shared: Arc<Shared>,
    condition: watch::Sender<Condition>,
}

/// Where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addrs {
    /// HTTP, if it does.
    pub http: Option<SocketAddr>,
    /// gRPC.
    pub grpc: Option<SocketAddr>,
    /// RESP.
    pub resp: Option<SocketAddr>,
    /// What administrators do, if apart.
    pub admin: Option<SocketAddr>,
}

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) region: Option<String>,
    pub(crate) zone: Option<String>,
    pub(crate) advertise: Option<String>,
    pub(crate) issuer: Issuer,
    pub(crate) scopes: Scopes,
    pub(crate) node_elections: NodeElections,
    pub(crate) stale: StaleSlots,
    pub(crate) gate: Gate,
    pub(crate) followed: Followed,
    pub(crate) tls: Option<Tls>,
    pub(crate) proxies: Arc<TrustedProxies>,
    pub(crate) in_flight: InFlight,
    pub(crate) connection_limits: AllConnectionLimits,
    pub(crate) metrics: Metrics,
    pub(crate) frame: JsonFrame,
    pub(crate) openapi: bytes::Bytes,
    pub(crate) cluster_cache: ClusterCache,
    pub(crate) replicas: MissingReplicas,
    pub(crate) shutdown: Shutdown,
    pub(crate) drain_delay: Duration,
    /// Why the store could not be opened yet.
    trouble: arc_swap::ArcSwapOption<String>,
}

impl App {
    /// Takes the addresses to listen on. Nothing is answered before [`run`](Self::run).
    ///
    /// # Errors
    /// If an address cannot be had, or the configuration makes no sense.
    pub async fn bind(mut config: Config) -> Result<Self, BindError> {
        check_scopes(&config.scopes)?;
        check_listeners(&config)?;
        config.node.check().map_err(BindError::Node)?;
        let keys = keyring(&config)?;
        let tls = config.tls.clone().map(Tls::load).transpose().map_err(BindError::Tls)?;
        reload::warn_of_files(&NamedFiles::of(&config));
        let most = connections_max(config.limits.max_connections);
        if most < config.limits.max_connections {
            tracing::info!(most, "connections of each protocol are limited by file descriptors");
            config.limits.max_connections = most;
        }
        let http = listen("HTTP", config.http)?;
        let grpc = listen("gRPC", config.grpc)?;
        let resp = listen("RESP", config.resp)?;
        let admin = listen("administration", config.admin)?;
        let address = |listener: &Option<TcpListener>| {
            listener.as_ref().and_then(|listener| listener.local_addr().ok())
        };
        let addrs = Addrs {
            http: address(&http),
            grpc: address(&grpc),
            resp: address(&resp),
            admin: address(&admin),
        };
        let threads = Arc::new(ServeThreads::start(config.threads).map_err(BindError::Threads)?);
        config.node = described(&config, addrs);
        let node_elections = NodeElections::new(&config, peer_address(&config, addrs))?;
        let entries = keys.as_ref().map(Keyring::entries);
        warn_of_peers(&config, entries.as_deref());
        let max_failed_keys = config.limits.max_failed_keys;
        let gate = Gate::new(keys, config.open_metrics, config.admin.is_some(), max_failed_keys);
        let scopes = Scopes::new(&config).map_err(BindError::Peers)?;
        let shared = Arc::new(Shared::new(&config, gate, tls, scopes, node_elections));
        follow::warn_of_certificates(&shared);
        let (condition, _) = watch::channel(Condition::new(NodeState::Starting, None));
        Ok(Self { config, http, grpc, resp, admin, addrs, threads, shared, condition })
    }

    /// Where it listens.
    #[must_use]
    pub const fn addrs(&self) -> Addrs {
        self.addrs
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Reads keys and certificates again when it is told to.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        Reloader::new(self.shared.clone(), &self.config)
    }

    /// How the node is doing, now and whenever that changes.
    #[must_use]
    pub fn condition(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    /// Serves until `signal` is done, and then until everything is put in order: no new
    /// clients, requests in flight finished, workers released.
    ///
    /// # Errors
    /// If the node cannot start, or refused for longer than it may.
    pub async fn run(self, signal: impl Future<Output = ()>) -> Result<(), RunError> {
        let Self { config, http, grpc, resp, admin, threads, shared, condition, .. } = self;
        let shutdown = shared.shutdown.clone();
        let mut listeners = tokio::task::JoinSet::new();
        if let Some(listener) = http {
            let (shared, threads) = (shared.clone(), threads.clone());
            listeners.spawn(http::serve(listener, shared, threads, Door::Front));
        }
        if let Some(listener) = admin {
            let (shared, threads) = (shared.clone(), threads.clone());
            listeners.spawn(http::serve(listener, shared, threads, Door::Admin));
        }
        if let Some(listener) = grpc {
            listeners.spawn(grpc::serve(listener, shared.clone(), condition.subscribe()));
        }
        if let Some(listener) = resp {
            listeners.spawn(resp::serve(listener, shared.clone(), threads.clone()));
        }
        let voting = tokio::spawn(elections::run(shared.clone(), condition.subscribe()));
        let following = tokio::spawn(follow::run(shared.clone(), condition.subscribe()));
        let outcome = tokio::select! {
            () = signal => Ok(()),
            end = keep(&shared, &config, &condition) => end,
        };
        let reason = outcome.as_ref().err().map(ToString::to_string);
        // Who was drained before it was stopped has given balancers their time.
        let was_drained = shutdown.draining.is_cancelled();
        shutdown.draining.cancel();
        note_change(&condition, &Condition::new(NodeState::Draining, reason));
        if outcome.is_ok() && !was_drained {
            tokio::time::sleep(config.drain_delay).await;
        }
        if !shutdown.close(config.drain_timeout).await {
            tracing::warn!("requests in flight did not finish in time: their connections are cut");
        }
        listeners.shutdown().await;
        if let Some(threads) = Arc::into_inner(threads) {
            threads.end().await;
        }
        shared.node_elections.resigned().await;
        voting.abort();
        following.abort();
        if let Some(node) = shared.issuer.node() {
            node.shutdown().await;
        }
        note_change(&condition, &Condition::new(NodeState::Stopped, None));
        outcome
    }
}

/// Starts the node and follows it. Ends only with an error.
async fn keep(
    shared: &Shared,
    config: &Config,
    condition: &watch::Sender<Condition>,
) -> Result<(), RunError> {
    let tell = |error: &StartError| {
        let told = shared.trouble.swap(Some(Arc::new(error.to_string())));
        if told.is_none_or(|told| *told != error.to_string()) {
            tracing::warn!(%error, "the store cannot be opened yet");
        }
    };
    let opening = open::open(&config.node, tell);
    // Whoever is told to go before it has begun does not begin.
    let Some(node) = shared.shutdown.draining.run_until_cancelled(opening).await else {
        return std::future::pending().await;
    };
    let node = node.map_err(RunError::Start)?;
    shared.trouble.store(None);
    shared.issuer.begin(node);
    let watching =
        monitor::run(shared, condition, config.refusal_limit, shared.shutdown.draining.clone());
    let scaled = async {
        match config.lanes {
            LaneCount::Fixed(_) => std::future::pending().await,
            LaneCount::Auto => scaling::run(shared, shared.shutdown.draining.clone()).await,
        }
    };
    let end = tokio::select! {
        end = watching => end,
        () = scaled => End::Shutdown,
        () = replicas::run(shared) => End::Shutdown,
    };
    match end {
        End::Shutdown => std::future::pending().await,
        End::Refused(why) => Err(RunError::Refused { why, limit: config.refusal_limit }),
        End::Hopeless(refusal) => Err(RunError::Start(StartError::Refused(refusal))),
    }
}

impl Shared {
    fn new(
        config: &Config,
        gate: Gate,
        tls: Option<Tls>,
        scopes: Scopes,
        node_elections: NodeElections,
    ) -> Self {
        let layout = *config.node.chosen_layout();
        let max_ahead = config.node.chosen_options().max_ahead;
        let names: Vec<String> = config.scopes.iter().map(|scope| scope.name.clone()).collect();
        let metrics = Metrics::new(&names, gate.metrics());
        let proxies = Arc::new(TrustedProxies::new(config.trusted_proxies.clone()));
        let issuer = Issuer::new(layout, max_ahead, config.limits, names);
        Self {
            openapi: http::openapi(issuer.limits().max_count),
            name: config.name.clone(),
            namespace: config.node.chosen_namespace().to_string(),
            region: config.region.clone(),
            zone: config.zone.clone(),
            advertise: config.advertise.clone(),
            issuer,
            scopes,
            node_elections,
            stale: StaleSlots::default(),
            gate,
            followed: Followed::new(config.keys == Some(KeySource::Store)),
            tls,
            in_flight: InFlight::default(),
            connection_limits: AllConnectionLimits::new(&config.limits, &proxies),
            proxies,
            metrics,
            frame: JsonFrame::new(&config.name, layout, config.region.as_deref()),
            cluster_cache: ClusterCache::default(),
            replicas: MissingReplicas::default(),
            shutdown: Shutdown::default(),
            drain_delay: config.drain_delay,
            trouble: arc_swap::ArcSwapOption::empty(),
        }
    }

    /// A connection as it is spoken over: through TLS, if there is a certificate. What the client
    /// shows of itself then is noted.
    pub(crate) async fn secured(
        &self,
        stream: TcpStream,
        speech: Speech,
        remote: &mut Remote,
    ) -> Result<Stream, NoHandshake> {
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(stream)) };
        // On the heap for as long as it takes: a connection that waits does without its memory.
        match Box::pin(tls.accept(stream, speech, self.issuer.limits())).await {
            Ok(stream) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                remote.certificate = shown.and_then(Certificate::of).map(Arc::new);
                Ok(Stream::Tls(Box::new(stream)))
            }
            Err(why) => {
                if let NoHandshake::Failed(error) = &why {
                    let peer = remote.address;
                    tracing::info!(%peer, %error, "a client did not get through the TLS handshake");
                }
                Err(why)
            }
        }
    }

    /// The workers that the node holds.
    pub(crate) fn workers(&self) -> Vec<u32> {
        self.issuer.node().map(|node| node.info().workers()).unwrap_or_default()
    }

    /// How the node is doing at this moment.
    pub(crate) fn condition(&self) -> Condition {
        let Some(node) = self.issuer.node() else {
            let trouble = self.trouble.load().as_deref().cloned();
            let reason = trouble.unwrap_or_else(|| "the store is being opened".to_owned());
            return Condition::new(NodeState::Starting, Some(reason));
        };
        let (info, check) = (node.info(), node.check());
        if check.is_ok() {
            self.issuer.note_ready();
        }
        let condition = Condition::of(&info, check, self.issuer.has_issued());
        if self.shutdown.draining.is_cancelled() {
            return Condition { state: NodeState::Draining, reason: None, ..condition };
        }
        condition
    }

    /// The page of metrics.
    pub(crate) fn metrics_page(&self, exposition: crate::metrics::Exposition) -> String {
        let info = self.issuer.node().map(frazil::Node::info);
        let seen = Seen {
            condition: &self.condition(),
            node: self.issuer.node(),
            info: info.as_ref(),
            pool: self.cluster_cache.pool(),
            strain: &self.issuer.strain,
            layout: self.issuer.layout(),
            in_flight: self.in_flight.count(),
            connections: self.connection_limits.counts(),
            elections: &self.node_elections.counts(),
            stale: self.stale.last(),
            missing_replicas: &self.replicas.last(),
            keys_age: self.followed.age(),
        };
        self.metrics.page(&seen, exposition)
    }
}

/// As many connections of each protocol as file descriptors allow.
fn connections_max(wanted: usize) -> usize {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    // Where there are few, half of them serve all the same.
    let free = most.saturating_sub(DESCRIPTORS_KEPT).max(most / 2);
    wanted.min((free / 3).max(1))
}

fn listen(
    protocol: &'static str,
    address: Option<SocketAddr>,
) -> Result<Option<TcpListener>, BindError> {
    let Some(address) = address else { return Ok(None) };
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A node that restarts need not wait for what its predecessor had open.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().map(Some).map_err(|error| BindError::Listen { protocol, address, error })
}

/// Where other nodes reach this one, if they can.
fn peer_address(config: &Config, addrs: Addrs) -> Option<String> {
    let own = || listen_address(config, addrs);
    config.advertise.clone().filter(|_| addrs.http.is_some()).or_else(own)
}

/// Where this node listens for HTTP, unless that is everywhere: then it does not know.
fn listen_address(config: &Config, addrs: Addrs) -> Option<String> {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let own = addrs.http.filter(|address| !address.ip().is_unspecified());
    own.map(|address| format!("{scheme}://{address}"))
}

fn warn_of_peers(config: &Config, keys: Option<&[KeyEntry]>) {
    let settings = PeerSettings {
        scopes: &config.scopes,
        keys,
        key_file: config.peer_key_file.as_deref(),
        ca: config.peer_ca.as_deref(),
    };
    for PeerWarning { detail, fix } in settings.warnings() {
        tracing::warn!("{detail}; {fix}");
    }
}

/// The node with what its peers should know of it.
fn described(config: &Config, addrs: Addrs) -> frazil::Builder {
    let lanes = match config.lanes {
        LaneCount::Fixed(lanes) => lanes,
        LaneCount::Auto => 1,
    };
    let mut node = config.node.clone().holder(&config.name).lanes(lanes);
    let listen = listen_address(config, addrs);
    for (name, value) in [
        ("region", &config.region),
        ("zone", &config.zone),
        (ADVERTISE, &config.advertise),
        (LISTEN, &listen),
    ] {
        if let Some(value) = value {
            node = node.info(name, value);
        }
    }
    node
}

/// The keys at the start: those of the file, or none yet where they are in the store.
fn keyring(config: &Config) -> Result<Option<Keyring>, BindError> {
    Ok(match &config.keys {
        None => None,
        Some(KeySource::Store) => {
            let store = config.node.store_to_open().map_err(BindError::Node)?;
            if store.scheme == Scheme::Memory {
                return Err(BindError::KeysInMemory);
            }
            Some(Keyring::unread())
        }
        Some(KeySource::File(path)) => {
            let entries = keys::read(path).map_err(BindError::Keys)?;
            Some(Keyring::new(entries, None, NonZeroU32::MIN))
        }
    })
}

/// Refuses listeners that must not be, and warns of those that are meant.
fn check_listeners(config: &Config) -> Result<(), BindError> {
    for problem in crate::config::rules::listeners(config) {
        if let crate::ConfigError::Bind(error) = problem.error {
            return Err(error);
        }
    }
    let listeners = [config.http, config.grpc, config.resp, config.admin];
    if let Some(address) = listeners.into_iter().flatten().find(crate::config::rules::is_exposed)
        && !crate::config::rules::is_guarded(config)
    {
        tracing::warn!(%address, "others can reach a listener without TLS or without keys");
    }
    Ok(())
}
