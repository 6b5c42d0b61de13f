//! The other end of a connection: its address, its certificate, and whether it has shown a key.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frazil_wire::ApiError;
use hyper::HeaderMap;

use crate::net::certificate::Certificate;
use crate::net::connection_limits::ConnectionPermit;
use crate::net::proxies::TrustedProxies;
use crate::net::request_id::RequestId;
use crate::policy::access::ListenerKind;

/// The other end of a connection, or of one request that came through a proxy.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// Its number: all connections of a process have different ones.
    pub(crate) connection: u64,
    /// The client's address, as far as it is known.
    pub(crate) address: IpAddr,
    /// The name of the listener that it came through.
    pub(crate) listener: &'static str,
    /// Whom that listener is for.
    pub(crate) listener_kind: ListenerKind,
    /// Beyond the limit: only those who watch the node are answered.
    pub(crate) is_spare: bool,
    /// The address is that of a trusted proxy, whoever it speaks for.
    pub(crate) is_proxy: bool,
    /// The certificate that the client showed, if it was asked for one.
    pub(crate) certificate: Option<Arc<Certificate>>,
    /// The request, where requests have names.
    pub(crate) request: Option<RequestId>,
    /// Whether the last key that was shown on the connection was a good one. None where clients
    /// share the connection.
    has_shown_key: Option<Arc<AtomicBool>>,
}

impl Remote {
    pub(crate) fn new(address: IpAddr, permit: &ConnectionPermit) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only told apart by it.
        let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let limits = permit.limits();
        Self {
            connection,
            address: address.to_canonical(),
            listener: limits.listener,
            listener_kind: limits.listener_kind,
            is_spare: permit.is_spare(),
            is_proxy: limits.proxies.contains(address),
            certificate: None,
            request: None,
            has_shown_key: Some(Arc::default()),
        }
    }

    /// Notes whom the connection is from, by the word of a proxy, and its permit.
    pub(crate) fn set_client(&mut self, client: IpAddr, permit: &ConnectionPermit) {
        self.address = client;
        self.is_spare = permit.is_spare();
        self.is_proxy = permit.limits().proxies.contains(client);
    }

    /// The same for one of its requests.
    pub(crate) fn with_request(&self, request: RequestId) -> Self {
        Self { request: Some(request), ..self.clone() }
    }

    /// The same from whom the headers say it is, if a trusted proxy sent them.
    ///
    /// # Errors
    /// If they make no sense.
    pub(crate) fn forwarded(
        self,
        headers: &HeaderMap,
        proxies: &TrustedProxies,
    ) -> Result<Self, ApiError> {
        if !self.is_proxy {
            return Ok(self);
        }
        let Some(address) = proxies.client(headers)? else { return Ok(self) };
        let is_proxy = proxies.contains(address);
        Ok(Self { address, is_proxy, has_shown_key: None, ..self })
    }

    /// Whether this connection showed a good key, and none that was wrong since.
    pub(crate) fn has_shown_key(&self) -> bool {
        // Relaxed: requests of one connection that race may see either.
        self.has_shown_key.as_ref().is_some_and(|shown| shown.load(Ordering::Relaxed))
    }

    /// Notes whether the key that was shown now is a good one.
    pub(crate) fn note_key(&self, is_good: bool) {
        if let Some(shown) = &self.has_shown_key
            && shown.load(Ordering::Relaxed) != is_good
        {
            shown.store(is_good, Ordering::Relaxed);
        }
    }
}
