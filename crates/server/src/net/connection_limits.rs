//! The limits on open connections, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::Limits;
use crate::net::proxies::TrustedProxies;
use crate::policy::access::ListenerKind;

/// Connections of administrators: people and their tools.
pub(crate) const ADMIN_CONNECTIONS: usize = 64;

/// The limits of all listeners.
#[derive(Debug)]
pub(crate) struct AllConnectionLimits {
    pub(crate) http: Arc<ConnectionLimits>,
    pub(crate) grpc: Arc<ConnectionLimits>,
    pub(crate) resp: Arc<ConnectionLimits>,
    pub(crate) admin: Arc<ConnectionLimits>,
}

impl AllConnectionLimits {
    pub(crate) fn new(limits: &Limits, proxies: &Arc<TrustedProxies>) -> Self {
        let Limits { max_connections, max_connections_per_peer, handshake_timeout, .. } = *limits;
        let of = |listener| ConnectionLimits {
            listener,
            listener_kind: ListenerKind::Public,
            most: max_connections,
            most_per_peer: max_connections_per_peer,
            proxies: proxies.clone(),
            handshake_timeout,
            taken: Mutex::default(),
        };
        let admin = Arc::new(ConnectionLimits {
            listener_kind: ListenerKind::Admin,
            most: ADMIN_CONNECTIONS,
            most_per_peer: ADMIN_CONNECTIONS,
            ..of("admin")
        });
        let of = |listener| Arc::new(of(listener));
        Self { http: of("http"), grpc: of("grpc"), resp: of("resp"), admin }
    }

    /// How many are taken, by listener.
    pub(crate) fn counts(&self) -> [(&'static str, usize); 4] {
        [&self.http, &self.grpc, &self.resp, &self.admin].map(|limits| {
            let taken = limits.taken();
            (limits.listener, taken.in_all + taken.spare)
        })
    }
}

/// The limits of one listener.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    /// The name of the listener, for metrics and logs.
    pub(crate) listener: &'static str,
    pub(crate) listener_kind: ListenerKind,
    most: usize,
    most_per_peer: usize,
    /// Addresses whose connections carry those of other clients.
    pub(crate) proxies: Arc<TrustedProxies>,
    /// How long a proxy may take to say for which client it connects.
    pub(crate) handshake_timeout: Duration,
    taken: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    in_all: usize,
    spare: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// Connections that are let in beyond the limit to be told so, and to answer probes: whoever watches
/// a node must see it when it is full.
const SPARE: usize = 64;

/// File descriptors of one listener beyond its connections.
pub(crate) const SPARE_DESCRIPTORS: usize = SPARE;

/// The right to one connection, for as long as it is kept.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limits: Arc<ConnectionLimits>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordinary(IpAddr),
    /// Of a trusted proxy, which has no share of its own.
    Proxy,
    Spare,
}

impl ConnectionLimits {
    /// A permit for somebody from that address; a spare one if there is no other, and none at all if
    /// there is not even that.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionPermit> {
        let mut taken = self.taken();
        let kind = if taken.in_all >= self.most { None } else { self.share(&mut taken, peer) };
        if kind.is_some() {
            taken.in_all += 1;
        }
        let kind = kind.or_else(|| taken.spare())?;
        drop(taken);
        Some(ConnectionPermit { limits: self.clone(), kind })
    }

    /// Counts a permit for its peer, unless that one has all it may have.
    fn share(&self, taken: &mut OpenConnections, peer: IpAddr) -> Option<Kind> {
        if self.proxies.contains(peer) {
            return Some(Kind::Proxy);
        }
        let peer = address_group(peer);
        if taken.by_peer.get(&peer).is_some_and(|of_peer| *of_peer >= self.most_per_peer) {
            return None;
        }
        *taken.by_peer.entry(peer).or_default() += 1;
        Some(Kind::Ordinary(peer))
    }

    fn taken(&self) -> MutexGuard<'_, OpenConnections> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn spare(&mut self) -> Option<Kind> {
        (self.spare < SPARE).then(|| {
            self.spare += 1;
            Kind::Spare
        })
    }
}

impl ConnectionPermit {
    pub(crate) fn limits(&self) -> &Arc<ConnectionLimits> {
        &self.limits
    }

    /// Counts the permit of a proxy for the client that it speaks for. Where that one has all it may
    /// have, it becomes a spare one; where there is none of those either, it is given back.
    pub(crate) fn count_for(mut self, client: IpAddr) -> Option<Self> {
        if self.kind != Kind::Proxy {
            return Some(self);
        }
        let limits = self.limits.clone();
        let mut taken = limits.taken();
        let kind = limits.share(&mut taken, client).or_else(|| {
            let spare = taken.spare();
            taken.in_all -= usize::from(spare.is_some());
            spare
        });
        drop(taken);
        self.kind = kind?;
        Some(self)
    }

    /// Whether it is one of the few beyond the limit.
    pub(crate) fn is_spare(&self) -> bool {
        self.kind == Kind::Spare
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.limits.taken();
        let peer = match self.kind {
            Kind::Ordinary(peer) => peer,
            Kind::Proxy => {
                taken.in_all -= 1;
                return;
            }
            Kind::Spare => {
                taken.spare -= 1;
                return;
            }
        };
        taken.in_all -= 1;
        if let Some(of_peer) = taken.by_peer.get_mut(&peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                taken.by_peer.remove(&peer);
            }
        }
    }
}

/// The addresses that count as one: whoever has one IPv6 address has the 2^64 around it.
pub(crate) fn address_group(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(prefix.into())
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// ConnectionLimits behind a proxy at 10.9.9.9.
    fn limits(max_connections: usize, max_connections_per_peer: usize) -> Arc<ConnectionLimits> {
        let proxies = TrustedProxies::new(vec!["10.9.9.9".parse().unwrap()]);
        let limits = Limits { max_connections, max_connections_per_peer, ..Limits::default() };
        AllConnectionLimits::new(&limits, &Arc::new(proxies)).http
    }

    #[test]
    fn a_proxy_has_no_share_and_its_clients_have_theirs() {
        let limits = limits(4, 1);
        let proxy = [(); 3].map(|()| limits.take(ip("10.9.9.9")).unwrap());
        assert!(proxy.iter().all(|place| !place.is_spare()));
        let [one, other, same] = proxy;
        let one = one.count_for(ip("10.0.0.1")).unwrap();
        let other = other.count_for(ip("10.0.0.2")).unwrap();
        assert!(!one.is_spare() && !other.is_spare());
        assert!(limits.take(ip("10.0.0.1")).unwrap().is_spare());
        let same = same.count_for(ip("10.0.0.1")).unwrap();
        assert!(same.is_spare());
        let counts = |taken: MutexGuard<'_, OpenConnections>| (taken.in_all, taken.spare);
        assert_eq!(counts(limits.taken()), (2, 1));
        // Without a spare one there is none.
        let spare: Vec<_> = (1..SPARE).map(|_| limits.take(ip("10.0.0.1")).unwrap()).collect();
        let late = limits.take(ip("10.9.9.9")).unwrap();
        assert!(!late.is_spare() && late.count_for(ip("10.0.0.1")).is_none());
        drop((one, other, same, spare));
        let taken = limits.taken();
        assert_eq!((taken.in_all, taken.spare, taken.by_peer.len()), (0, 0, 0));
    }

    #[test]
    fn beyond_the_limits_there_are_a_few_spare_places_and_then_none() {
        let limits = limits(3, 2);
        let one = [(); 2].map(|()| limits.take(ip("10.0.0.1")).unwrap());
        assert!(one.iter().all(|place| !place.is_spare()));
        // Its own share is used up, that of others is not.
        assert!(limits.take(ip("10.0.0.1")).unwrap().is_spare());
        let other = limits.take(ip("10.0.0.2")).unwrap();
        assert!(!other.is_spare());
        let spare: Vec<_> = (0..SPARE).map(|_| limits.take(ip("10.0.0.3")).unwrap()).collect();
        assert!(spare.iter().all(ConnectionPermit::is_spare));
        assert!(limits.take(ip("10.0.0.3")).is_none());
        drop((one, other, spare));
        let taken = limits.taken();
        assert_eq!((taken.in_all, taken.spare, taken.by_peer.len()), (0, 0, 0));
    }

    #[test]
    fn an_address_counts_with_its_neighbourhood() {
        assert_eq!(address_group(ip("::ffff:10.0.0.1")), ip("10.0.0.1"));
        assert_eq!(address_group(ip("2001:db8::1")), address_group(ip("2001:db8::ffff:1")));
        assert_ne!(address_group(ip("2001:db8::1")), address_group(ip("2001:db8:0:1::1")));
    }
}
