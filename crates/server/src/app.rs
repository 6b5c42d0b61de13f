//! The server, from its listeners to its end.

mod bind;
mod error;
mod reload;
pub(crate) mod shutdown;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use frazil::StartError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub use self::bind::DESCRIPTORS_KEPT;
use self::bind::{
    check_listeners, connections_max, described, keyring, listen, peer_address, warn_of_peers,
};
pub use self::error::{BindError, RunError};
use self::reload::NamedFiles;
pub use self::reload::{Exposed, Reloader, Secrecy, exposed};
use self::shutdown::Shutdown;
use crate::cluster::cache::ClusterCache;
use crate::cluster::elections::{self, NodeElections};
use crate::cluster::replicas::{self, MissingReplicas};
use crate::cluster::scopes::{Scopes, check_scopes};
use crate::cluster::tasks::StaleWorkers;
use crate::config::{Config, LaneCount};
use crate::encode::JsonFrame;
use crate::issuer::Issuer;
use crate::metrics::{Metrics, MetricsSnapshot};
use crate::net::certificate::Certificate;
use crate::net::connection_limits::AllConnectionLimits;
use crate::net::listener::Remote;
use crate::net::proxies::TrustedProxies;
use crate::net::serve_threads::ServeThreads;
use crate::net::stream::Stream;
use crate::net::tls::{HandshakeError, Tls, TlsProtocol};
use crate::net::unauthenticated::UnauthenticatedClients;
use crate::node::condition::{Condition, NodeState};
use crate::node::monitor::{self, End, note_change};
use crate::node::{open, scaling};
use crate::policy::access::{Authenticator, ListenerKind};
use crate::policy::in_flight::InFlight;
use crate::policy::keys::follow::{self, StoredKeysStatus};
use crate::policy::keys::{KeySource, Keyring};
use crate::{grpc, http, resp};

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
#[non_exhaustive]
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
    pub(crate) stale: StaleWorkers,
    pub(crate) authenticator: Authenticator,
    pub(crate) stored_keys_status: StoredKeysStatus,
    pub(crate) tls: Option<Tls>,
    pub(crate) proxies: Arc<TrustedProxies>,
    pub(crate) in_flight: InFlight,
    pub(crate) connection_limits: AllConnectionLimits,
    /// Over HTTP behind TLS, before the first request.
    pub(crate) unauthenticated_tls: Arc<UnauthenticatedClients>,
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

/// A server that runs.
type Running<'a> = Pin<Box<dyn Future<Output = Result<(), RunError>> + Send + 'a>>;

impl App {
    /// Takes the addresses to listen on. Nothing is answered before [`run`](Self::run).
    ///
    /// # Errors
    /// If an address cannot be had, or the configuration makes no sense.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        Self::bound(config)
    }

    fn bound(mut config: Config) -> Result<Self, BindError> {
        check_scopes(&config.scopes)?;
        check_listeners(&config)?;
        config.node.check().map_err(BindError::Node)?;
        let keys = keyring(&config)?;
        let tls = config.tls.clone().map(Tls::load).transpose().map_err(BindError::Tls)?;
        reload::warn_of_files(&NamedFiles::of(&config));
        let most = connections_max(config.limits.max_connections);
        if most < config.limits.max_connections {
            tracing::info!(
                most,
                "fewer connections per protocol than configured: the limit of open files is too low (ulimit -n)"
            );
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
        let authenticator =
            Authenticator::new(keys, config.open_metrics, config.admin.is_some(), max_failed_keys);
        let scopes = Scopes::new(&config).map_err(BindError::Peers)?;
        let shared = Arc::new(Shared::new(&config, authenticator, tls, scopes, node_elections));
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
    pub async fn run(self, signal: impl Future<Output = ()> + Send) -> Result<(), RunError> {
        self.boxed(std::pin::pin!(signal)).await
    }

    /// Boxed, so that the server is compiled here and not in every crate that runs one.
    fn boxed<'a>(self, signal: Pin<&'a mut (dyn Future<Output = ()> + Send + 'a)>) -> Running<'a> {
        Box::pin(self.serve(signal))
    }

    async fn serve(
        self,
        signal: Pin<&mut (dyn Future<Output = ()> + Send + '_)>,
    ) -> Result<(), RunError> {
        let Self { config, http, grpc, resp, admin, threads, shared, condition, .. } = self;
        let shutdown = shared.shutdown.clone();
        let mut listeners = tokio::task::JoinSet::new();
        if let Some(listener) = http {
            let (shared, threads) = (shared.clone(), threads.clone());
            listeners.spawn(http::serve(listener, shared, threads, ListenerKind::Public));
        }
        if let Some(listener) = admin {
            let (shared, threads) = (shared.clone(), threads.clone());
            listeners.spawn(http::serve(listener, shared, threads, ListenerKind::Admin));
        }
        if let Some(listener) = grpc {
            listeners.spawn(grpc::serve(listener, shared.clone(), condition.subscribe()));
        }
        if let Some(listener) = resp {
            listeners.spawn(resp::serve(listener, shared.clone(), threads.clone()));
        }
        let electing = tokio::spawn(elections::run(shared.clone(), condition.subscribe()));
        let following = tokio::spawn(follow::run(shared.clone(), condition.subscribe()));
        let outcome = tokio::select! {
            () = signal => Ok(()),
            end = keep(&shared, &config, &condition) => end,
        };
        let reason = outcome.as_ref().err().map(|error| format!("{error:#}"));
        // Who was drained before it was stopped has given balancers their time.
        let was_drained = shutdown.draining.is_cancelled();
        shutdown.draining.cancel();
        note_change(&condition, &Condition::new(NodeState::Draining, reason));
        if outcome.is_ok() && !was_drained {
            tokio::time::sleep(config.drain_delay).await;
        }
        if !shutdown.close(config.drain_timeout).await {
            tracing::warn!(
                "requests in flight did not finish within the drain timeout: closing their connections"
            );
        }
        listeners.shutdown().await;
        if let Some(threads) = Arc::into_inner(threads) {
            threads.end().await;
        }
        shared.node_elections.resigned().await;
        electing.abort();
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
        let told = shared.trouble.swap(Some(Arc::new(format!("{error:#}"))));
        if told.is_none_or(|told| *told != format!("{error:#}")) {
            tracing::warn!(error = %format_args!("{error:#}"), "cannot open the store, and tries again every second");
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
        authenticator: Authenticator,
        tls: Option<Tls>,
        scopes: Scopes,
        node_elections: NodeElections,
    ) -> Self {
        let layout = *config.node.chosen_layout();
        let max_ahead = config.node.chosen_options().max_ahead;
        let names: Vec<String> = config.scopes.iter().map(|scope| scope.name.clone()).collect();
        let metrics = Metrics::new(&names, authenticator.metrics());
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
            stale: StaleWorkers::default(),
            authenticator,
            stored_keys_status: StoredKeysStatus::new(config.keys == Some(KeySource::Store)),
            tls,
            in_flight: InFlight::default(),
            connection_limits: AllConnectionLimits::new(&config.limits, &proxies),
            unauthenticated_tls: Arc::new(UnauthenticatedClients::new(
                http::UNAUTHENTICATED_TLS_MAX,
                config.limits.head_timeout,
            )),
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
        protocol: TlsProtocol,
        remote: &mut Remote,
    ) -> Result<Stream, HandshakeError> {
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(stream)) };
        // On the heap for as long as it takes: a connection that waits does without its memory.
        match Box::pin(tls.accept(stream, protocol, self.issuer.limits())).await {
            Ok(stream) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                remote.certificate = shown.and_then(Certificate::of).map(Arc::new);
                Ok(Stream::Tls(Box::new(stream)))
            }
            Err(why) => {
                if let HandshakeError::Failed(error) = &why {
                    let peer = remote.address;
                    tracing::info!(%peer, %error, "the TLS handshake with a client failed");
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
        let seen = MetricsSnapshot {
            condition: &self.condition(),
            node: self.issuer.node(),
            info: info.as_ref(),
            pool: self.cluster_cache.pool(),
            wait_stats: &self.issuer.wait_stats,
            layout: self.issuer.layout(),
            in_flight: self.in_flight.count(),
            connections: self.connection_limits.counts(),
            elections: &self.node_elections.counts(),
            stale: self.stale.last(),
            missing_replicas: &self.replicas.last(),
            keys_age: self.stored_keys_status.age(),
        };
        self.metrics.page(&seen, exposition)
    }
}
