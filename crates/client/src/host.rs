//! One server of those that are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use frazil_id::{Id, Layout};

use crate::endpoint::{Endpoint, Protocol};
use crate::error::Error;
use crate::health::Health;
use crate::http::Connections;
use crate::secret::Keyring;
use crate::server_info::ServerInfo;
use crate::tls::Trust;

/// How a server is reached and what is said to it.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) endpoint: Endpoint,
    pub(crate) trust: Option<Arc<Trust>>,
    pub(crate) key: Option<Arc<Keyring>>,
    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "HTTP has it in the query"))]
    pub(crate) scope: String,
    /// The scope as it stands in a query, with the `&`; empty without one.
    pub(crate) scope_query: String,
}

/// A server with its connections and what is known of its health.
#[derive(Debug)]
pub(crate) struct Host {
    way: Way,
    pub(crate) health: Health,
    busy: AtomicUsize,
    transport: Transport,
}

#[derive(Debug)]
enum Transport {
    Http(Connections),
    #[cfg(feature = "grpc")]
    Grpc(crate::grpc::Channels),
}

/// What a server is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    Ids(u32),
    Info,
}

/// What a server gave.
#[derive(Debug)]
pub(crate) enum Gift {
    Ids(Vec<Id>),
    Info(Box<ServerInfo>),
}

impl Host {
    pub(crate) fn new(way: Way) -> Self {
        let transport = match way.endpoint.protocol {
            #[cfg(feature = "grpc")]
            Protocol::Grpc => Transport::Grpc(crate::grpc::Channels::default()),
            // Without the feature no endpoint is read as one of gRPC.
            #[cfg(not(feature = "grpc"))]
            Protocol::Grpc => Transport::Http(Connections::default()),
            Protocol::Http => Transport::Http(Connections::default()),
        };
        Self { way, health: Health::new(), busy: AtomicUsize::new(0), transport }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.way.endpoint.text
    }

    /// How many requests it is answering for this client.
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    /// One attempt, which is given up after a time.
    pub(crate) async fn ask(
        &self,
        wish: Wish,
        layout: Option<&Layout>,
        within: Duration,
    ) -> Result<Gift, Error> {
        let _busy = Busy::begin(&self.busy);
        let asked = tokio::time::timeout(within, self.answer(wish, layout, within)).await;
        asked.unwrap_or(Err(Error::Late { within, last: None }))
    }

    #[cfg_attr(not(feature = "grpc"), expect(unused_variables, reason = "gRPC says the time"))]
    async fn answer(
        &self,
        wish: Wish,
        layout: Option<&Layout>,
        within: Duration,
    ) -> Result<Gift, Error> {
        match (&self.transport, wish) {
            (Transport::Http(http), Wish::Ids(count)) => {
                http.ids(&self.way, count, layout).await.map(Gift::Ids)
            }
            (Transport::Http(http), Wish::Info) => {
                http.info(&self.way).await.map(Box::new).map(Gift::Info)
            }
            #[cfg(feature = "grpc")]
            (Transport::Grpc(grpc), Wish::Ids(count)) => {
                grpc.ids(&self.way, count, layout, within).await.map(Gift::Ids)
            }
            #[cfg(feature = "grpc")]
            (Transport::Grpc(grpc), Wish::Info) => {
                grpc.info(&self.way, within).await.map(Box::new).map(Gift::Info)
            }
        }
    }
}

/// Counts a request for as long as it lasts, however it ends.
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        // Relaxed: a hint for whoever chooses.
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
