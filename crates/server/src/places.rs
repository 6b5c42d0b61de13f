//! How many connections may be open, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::Limits;

/// Connections of administrators: people and their tools.
pub(crate) const ADMIN_CONNECTIONS: usize = 64;

/// The places of all listeners.
#[derive(Debug)]
pub(crate) struct AllPlaces {
    pub(crate) http: Arc<Places>,
    pub(crate) grpc: Arc<Places>,
    pub(crate) resp: Arc<Places>,
    pub(crate) admin: Arc<Places>,
}

impl AllPlaces {
    pub(crate) fn new(limits: &Limits) -> Self {
        let places = |listener| {
            Places::new(listener, limits.max_connections, limits.max_connections_per_peer)
        };
        let admin = Places::new("admin", ADMIN_CONNECTIONS, ADMIN_CONNECTIONS);
        Self { http: places("http"), grpc: places("grpc"), resp: places("resp"), admin }
    }

    /// How many are taken, by listener.
    pub(crate) fn counts(&self) -> [(&'static str, usize); 4] {
        [&self.http, &self.grpc, &self.resp, &self.admin].map(|places| {
            let taken = places.taken();
            (places.listener, taken.in_all + taken.spare)
        })
    }
}

/// The places of one listener.
#[derive(Debug)]
pub(crate) struct Places {
    /// Whose they are.
    pub(crate) listener: &'static str,
    most: usize,
    most_per_peer: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    in_all: usize,
    spare: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// Connections that are let in beyond the limit to be told so, and to answer probes: whoever watches
/// a node must see it when it is full.
const SPARE: usize = 64;

/// File descriptors of one listener beyond its connections.
pub(crate) const SPARE_DESCRIPTORS: usize = SPARE;

/// A place, for as long as it is kept.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordinary(IpAddr),
    Spare,
}

impl Places {
    pub(crate) fn new(listener: &'static str, most: usize, most_per_peer: usize) -> Arc<Self> {
        Arc::new(Self { listener, most, most_per_peer, taken: Mutex::default() })
    }

    /// A place for somebody from that address; a spare one if there is no other, and none at all if
    /// there is not even that.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let mut taken = self.taken();
        let peer = neighbourhood(peer);
        let of_peer = taken.by_peer.get(&peer).copied().unwrap_or(0);
        let kind = if taken.in_all < self.most && of_peer < self.most_per_peer {
            taken.in_all += 1;
            *taken.by_peer.entry(peer).or_default() += 1;
            Kind::Ordinary(peer)
        } else if taken.spare < SPARE {
            taken.spare += 1;
            Kind::Spare
        } else {
            return None;
        };
        drop(taken);
        Some(Place { places: self.clone(), kind })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whether it is one of the few beyond the limit.
    pub(crate) fn is_spare(&self) -> bool {
        self.kind == Kind::Spare
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        let Kind::Ordinary(peer) = self.kind else {
            taken.spare -= 1;
            return;
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

/// Whoever has one IPv6 address has the 2^64 around it.
fn neighbourhood(peer: IpAddr) -> IpAddr {
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

    #[test]
    fn beyond_the_limits_there_are_a_few_spare_places_and_then_none() {
        let places = Places::new("http", 3, 2);
        let one = [(); 2].map(|()| places.take(ip("10.0.0.1")).unwrap());
        assert!(one.iter().all(|place| !place.is_spare()));
        // Its own share is used up, that of others is not.
        assert!(places.take(ip("10.0.0.1")).unwrap().is_spare());
        let other = places.take(ip("10.0.0.2")).unwrap();
        assert!(!other.is_spare());
        let spare: Vec<_> = (0..SPARE).map(|_| places.take(ip("10.0.0.3")).unwrap()).collect();
        assert!(spare.iter().all(Place::is_spare));
        assert!(places.take(ip("10.0.0.3")).is_none());
        drop((one, other, spare));
        let taken = places.taken();
        assert_eq!((taken.in_all, taken.spare, taken.by_peer.len()), (0, 0, 0));
    }

    #[test]
    fn an_address_counts_with_its_neighbourhood() {
        assert_eq!(neighbourhood(ip("::ffff:10.0.0.1")), ip("10.0.0.1"));
        assert_eq!(neighbourhood(ip("2001:db8::1")), neighbourhood(ip("2001:db8::ffff:1")));
        assert_ne!(neighbourhood(ip("2001:db8::1")), neighbourhood(ip("2001:db8:0:1::1")));
    }
}
