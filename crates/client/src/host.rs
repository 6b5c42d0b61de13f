//! One server of those that are asked.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use frazil_id::{Id, Layout};
use hyper::HeaderMap;

use crate::ask::{Answer, Ask};
use crate::endpoint::{Endpoint, Protocol};
use crate::error::Error;
use crate::health::Health;
use crate::http::{Connections, IdsRequest};
use crate::secret::Keyring;
use crate::server_info::ServerInfo;
use crate::tls::Trust;

/// How a server is reached and what is said to it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    pub(crate) trust: Option<Arc<Trust>>,
    pub(crate) key: Option<Arc<Keyring>>,
    /// Of which scope IDs are asked for; empty: of none.
    pub(crate) scope: String,
}

/// A server with its connections and what is known of its health.
#[derive(Debug)]
pub(crate) struct Host {
    target: Arc<Target>,
    pub(crate) health: Health,
    busy: AtomicUsize,
    /// Whether it is in the client's own zone, as far as is known.
    is_near: AtomicBool,
    transport: Transport,
}

#[derive(Debug)]
enum Transport {
    Http(Connections),
    #[cfg(feature = "grpc")]
    Grpc(crate::grpc::Channels),
}

/// What a server is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Ids(u32),
    Info,
    Other(Arc<Ask>),
}

/// What a server gave.
#[derive(Debug)]
pub(crate) enum Response {
    Ids(Vec<Id>),
    Info(Box<ServerInfo>),
    Other(Answer),
}

impl Request {
    /// Whether it may be made again after a failure.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self, Self::Other(ask) if !ask.is_repeatable)
    }

    /// Whether a server can answer it.
    pub(crate) fn suits(&self, host: &Host) -> bool {
        !matches!(self, Self::Other(_)) || host.endpoint().protocol == Protocol::Http
    }
}

impl Host {
    pub(crate) fn new(target: Target) -> Self {
        let target = Arc::new(target);
        let transport = match target.endpoint.protocol {
            #[cfg(feature = "grpc")]
            Protocol::Grpc => Transport::Grpc(crate::grpc::Channels::default()),
            // Without the feature no endpoint is read as one of gRPC.
            #[cfg(not(feature = "grpc"))]
            Protocol::Grpc => Transport::Http(Connections::new(target.clone())),
            Protocol::Http => Transport::Http(Connections::new(target.clone())),
        };
        Self {
            target,
            health: Health::new(),
            busy: AtomicUsize::new(0),
            is_near: AtomicBool::new(false),
            transport,
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.target.endpoint.text
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.target.endpoint
    }

    /// Whether it is in the client's own zone, as far as is known.
    pub(crate) fn is_near(&self) -> bool {
        // Relaxed, here and below: a hint for whoever chooses.
        self.is_near.load(Ordering::Relaxed)
    }

    pub(crate) fn set_near(&self, is_near: bool) {
        self.is_near.store(is_near, Ordering::Relaxed);
    }

    /// How many requests it is answering for this client.
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    /// One attempt, which is given up after a time.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        layout: Option<&Layout>,
        within: Duration,
    ) -> Result<Response, Error> {
        let _busy = InFlightGuard::begin(&self.busy);
        let asked = tokio::time::timeout(within, self.answer(request, layout, within)).await;
        asked.unwrap_or_else(|_| {
            let why = format!("it has not answered within {within:?}");
            Err(Error::unreachable(self.name(), io::Error::new(io::ErrorKind::TimedOut, why)))
        })
    }

    #[cfg_attr(not(feature = "grpc"), expect(unused_variables, reason = "gRPC says the time"))]
    async fn answer(
        &self,
        request: &Request,
        layout: Option<&Layout>,
        within: Duration,
    ) -> Result<Response, Error> {
        match (&self.transport, request) {
            (Transport::Http(http), Request::Ids(count)) => {
                let headers = HeaderMap::new();
                let wanted = IdsRequest { count: *count, scope: &self.target.scope, headers };
                http.ids(wanted, layout).await.map(|answer| Response::Ids(answer.ids))
            }
            (Transport::Http(http), Request::Info) => {
                http.info().await.map(Box::new).map(Response::Info)
            }
            (Transport::Http(http), Request::Other(ask)) => {
                http.other(ask).await.map(Response::Other)
            }
            #[cfg(feature = "grpc")]
            (Transport::Grpc(_), Request::Other(_)) => Err(Error::invalid(format_args!(
                "{} speaks gRPC, and this is asked over HTTP: name an http:// endpoint",
                self.name()
            ))),
            #[cfg(feature = "grpc")]
            (Transport::Grpc(grpc), Request::Ids(count)) => {
                grpc.ids(&self.target, *count, layout, within).await.map(Response::Ids)
            }
            #[cfg(feature = "grpc")]
            (Transport::Grpc(grpc), Request::Info) => {
                grpc.info(&self.target, within).await.map(Box::new).map(Response::Info)
            }
        }
    }
}

/// Counts a request for as long as it lasts, however it ends.
struct InFlightGuard<'a>(&'a AtomicUsize);

impl<'a> InFlightGuard<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        // Relaxed: a hint for whoever chooses.
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
