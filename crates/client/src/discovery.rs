//! The other servers of a cluster, learned from one: who is asked about them, which of the addresses
//! are used, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use frazil_wire::{Cluster, ClusterNode};
use tokio::task::JoinSet;

use crate::ask::Ask;
use crate::call;
use crate::clock::{self, nanos};
use crate::endpoint::Endpoint;
use crate::host::{Host, Request, Response};
use crate::inner::Inner;
use crate::observer::Event;
use crate::state::State;

/// Discovered servers that are used at once: more make no call faster, and each costs a connection.
const DISCOVERED_MAX: usize = 64;
/// How long the question may take.
const LIMIT: Duration = Duration::from_secs(2);

/// When the cluster is asked about next. One task at a time does it.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    next_ns: AtomicU64,
    is_running: AtomicBool,
}

/// The right to ask about the cluster. It is given back however the task ends.
struct DiscoveryPermit(Arc<State>);

impl Schedule {
    /// Whether it is time, and the caller is the one to do it.
    fn begin(&self, now_ns: u64, every: Duration) -> bool {
        // Relaxed for the time: a number of its own. Acquire and release for the flag, so that each
        // task sees the servers that the one before has found.
        if now_ns < self.next_ns.load(Ordering::Relaxed)
            || self.is_running.swap(true, Ordering::Acquire)
        {
            return false;
        }
        self.next_ns.store(now_ns.saturating_add(nanos(every)), Ordering::Relaxed);
        true
    }

    fn end(&self) {
        self.is_running.store(false, Ordering::Release);
    }
}

impl Drop for DiscoveryPermit {
    fn drop(&mut self) {
        self.0.discovery.end();
    }
}

/// Looks for other servers, while nobody waits for it. To be called when a server has answered: a
/// client that asks for nothing asks for this neither.
pub(crate) fn start_if_due(inner: &Arc<Inner>, state: &Arc<State>) {
    let Some(every) = inner.options.discovery else { return };
    if !state.discovery.begin(clock::boot_ns(), every) {
        return;
    }
    let turn = DiscoveryPermit(state.clone());
    let Some(runtime) = inner.runtime() else { return };
    let (inner, state) = (inner.clone(), state.clone());
    runtime.spawn(async move {
        let _turn = turn;
        if let Some(cluster) = ask(&state).await {
            follow(&inner, &state, cluster).await;
        }
    });
}

/// What a server that is well says of its cluster. One that will not say changes nothing.
async fn ask(state: &State) -> Option<Cluster> {
    let request = Request::Other(Arc::new(Ask::get("/v1/cluster")));
    let host = state.hosts.choice(clock::boot_ns(), |host| request.suits(host)).draw()?;
    match host.ask(&request, None, LIMIT).await {
        Ok(Response::Other(answer)) => serde_json::from_slice(&answer.body).ok(),
        _ => None,
    }
}

/// Uses the servers that are there now, each after it has answered.
async fn follow(inner: &Arc<Inner>, state: &Arc<State>, cluster: Cluster) {
    let before = state.hosts.discovered();
    let known = |endpoint: &Endpoint| {
        before.iter().find(|host| host.endpoint().is_same_place(endpoint)).cloned()
    };
    let (mut used, mut answering) = (Vec::new(), JoinSet::new());
    let namespace: Arc<str> = cluster.namespace.into();
    for Found { endpoint, is_near } in found(inner, state, cluster.nodes) {
        if let Some(host) = known(&endpoint) {
            host.set_near(is_near);
            used.push(host);
        } else if let Some(target) = inner.options.target(endpoint) {
            let host = Arc::new(Host::new(target));
            host.set_near(is_near);
            let (inner, namespace) = (inner.clone(), namespace.clone());
            answering.spawn(async move {
                call::probe(&inner, &host, Some(&namespace)).await.is_ok().then_some(host)
            });
        }
    }
    while let Some(answered) = answering.join_next().await {
        used.extend(answered.ok().flatten());
    }
    if state.is_closed() {
        return;
    }
    let missing_in =
        |hosts: &[Arc<Host>], host: &Arc<Host>| !hosts.iter().any(|other| Arc::ptr_eq(other, host));
    state.hosts.replace_discovered(used.clone());
    for host in used.iter().filter(|host| missing_in(&before, host)) {
        state.note(&Event::Joined { endpoint: host.name() });
    }
    for host in before.iter().filter(|host| missing_in(&used, host)) {
        state.note(&Event::Left { endpoint: host.name() });
    }
}

/// An address that may be used.
struct Found {
    endpoint: Endpoint,
    is_near: bool,
}

/// The addresses that nodes advertise and that were not given, those of our zone first. Which of the
/// given ones are of our zone is noted.
fn found(inner: &Inner, state: &State, nodes: Vec<ClusterNode>) -> Vec<Found> {
    let zone = inner.options.zone.as_deref();
    let mut all: Vec<Found> = Vec::new();
    for node in nodes {
        let Some(endpoint) = node.advertise.and_then(|url| Endpoint::parse(&url).ok()) else {
            continue;
        };
        let is_near = zone.is_some() && zone == node.zone.as_deref();
        let given = state.hosts.given().iter();
        let mut same = given.filter(|host| host.endpoint().is_same_place(&endpoint)).peekable();
        let is_given = same.peek().is_some();
        same.for_each(|host| host.set_near(is_near));
        let is_known = all.iter().any(|other| other.endpoint.is_same_place(&endpoint));
        if !is_given && !is_known && is_allowed(state, &endpoint) {
            all.push(Found { endpoint, is_near });
        }
    }
    // By chance, so that clients of a large cluster do not all use the same.
    fastrand::shuffle(&mut all);
    let discovered = state.hosts.discovered();
    let is_used = |found: &Found| {
        discovered.iter().any(|host| host.endpoint().is_same_place(&found.endpoint))
    };
    all.sort_by_key(|found| (!found.is_near, !is_used(found)));
    all.truncate(DISCOVERED_MAX);
    all
}

/// Whoever gave an address with TLS wants all that is said encrypted, and the key above all.
fn is_allowed(state: &State, endpoint: &Endpoint) -> bool {
    endpoint.is_secure || state.hosts.given().iter().all(|host| !host.endpoint().is_secure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    fn addresses(given: &[&str], advertised: &[(&str, Option<&str>)]) -> Vec<String> {
        let builder = Client::builder().endpoints(given.iter().copied()).zone("east");
        let inner = builder.inner().unwrap();
        let state = Arc::clone(&inner.state());
        let nodes = advertised.iter().map(|(url, zone)| {
            let mut node = ClusterNode::default();
            node.advertise = Some((*url).to_owned());
            node.zone = zone.map(ToOwned::to_owned);
            node
        });
        let found = found(&inner, &state, nodes.collect());
        found.iter().map(|found| found.endpoint.text.to_string()).collect()
    }

    #[test]
    fn an_address_in_the_clear_is_not_used_beside_one_with_tls() {
        let advertised = [("http://b:7780", None), ("https://c", None)];
        let mut plain = addresses(&["http://a"], &advertised);
        plain.sort();
        assert_eq!(plain, ["http://b:7780", "https://c"]);
        assert_eq!(addresses(&["https://a"], &advertised), ["https://c"]);
        assert_eq!(addresses(&["http://a", "https://d"], &advertised), ["https://c"]);
    }

    #[test]
    fn what_is_given_twice_or_no_address_is_left_out_and_our_zone_comes_first() {
        let advertised = [
            ("http://west:7780", Some("west")),
            ("http://east:7780", Some("east")),
            ("http://EAST", Some("east")),
            ("http://given", None),
            ("http://user:password@b", None),
            ("not an address", None),
        ];
        let used = addresses(&["http://given:7780/"], &advertised);
        assert_eq!(used, ["http://east:7780", "http://west:7780"]);
        let many: Vec<String> = (0..100).map(|node| format!("http://n{node}")).collect();
        let many: Vec<_> = many.iter().map(|url| (url.as_str(), None)).collect();
        assert_eq!(addresses(&["http://given"], &many).len(), DISCOVERED_MAX);
    }

    #[test]
    fn one_of_several_callers_asks_when_it_is_time() {
        let schedule = Schedule::default();
        let second = Duration::from_secs(1);
        assert!(schedule.begin(5, second) && !schedule.begin(6, second));
        assert!(!schedule.begin(1_000_000_006, second), "the first is still at it");
        schedule.end();
        assert!(!schedule.begin(7, second) && schedule.begin(1_000_000_006, second));
    }
}
