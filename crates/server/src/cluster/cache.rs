//! The cache of the namespace: its nodes and workers, as this node last saw them in the store.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use std::sync::Arc;

use frazil::Node;
use frazil::coord::internal::rules;
use frazil::coord::internal::time::{boot_time, unix_ms};
use frazil::coord::internal::{Claim, SlotCounts, SlotState};
use frazil::coord::{Entry, Error, Found, Group, History, Meta};
use frazil_id::rfc3339;
use frazil_wire::{ApiError, Cluster, ClusterNode, Reason, ScopeInfo, WorkerCounts};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::cluster::scopes::ADVERTISE;

/// The store is listed at most this often, however many ask.
const FRESH: Duration = Duration::from_secs(1);
/// Where a node listens for HTTP, in the records of its workers.
pub(crate) const LISTEN: &str = "listen";
/// The same where it is administered, if that is apart.
pub(crate) const ADMIN: &str = "admin";
/// How old the numbers of metrics may be.
const FRESH_ENOUGH: Duration = Duration::from_secs(10);
/// How long metrics wait for a store that is slow; without it they show what was last seen.
const METRICS_PATIENCE: Duration = Duration::from_millis(500);

/// Looks at the store for everybody who asks, one look at a time.
#[derive(Debug, Default)]
pub(crate) struct ClusterCache {
    last: ArcSwapOption<CachedCluster>,
    looking: Mutex<()>,
}

#[derive(Debug)]
struct CachedCluster {
    seen: Duration,
    cluster: Cluster,
}

/// The workers of a namespace, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerPool {
    pub(crate) capacity: u32,
    pub(crate) held: u32,
    pub(crate) blocked: u32,
}

impl ClusterCache {
    /// The namespace now, or a moment ago.
    pub(crate) async fn cluster(&self, node: &Node) -> Result<Cluster, ApiError> {
        if let Some(cluster) = self.not_older_than(FRESH) {
            return Ok(cluster);
        }
        let _looking = self.looking.lock().await;
        if let Some(cluster) = self.not_older_than(FRESH) {
            return Ok(cluster);
        }
        let cluster = look(node)
            .await
            .map_err(|error| ApiError::new(Reason::StoreUnavailable, error).retry_after(FRESH))?;
        self.last
            .store(Some(Arc::new(CachedCluster { seen: boot_time(), cluster: cluster.clone() })));
        Ok(cluster)
    }

    /// Looks again for the metrics, if the last look was long ago and the store answers soon.
    pub(crate) async fn refresh(&self, node: Option<&Node>) {
        if let Some(node) = node
            && self.not_older_than(FRESH_ENOUGH).is_none()
        {
            // What cannot be seen now is shown as it was last seen.
            let _ = tokio::time::timeout(METRICS_PATIENCE, self.cluster(node)).await;
        }
    }

    /// The workers as last seen.
    pub(crate) fn pool(&self) -> Option<WorkerPool> {
        let last = self.last.load();
        let workers = last.as_ref()?.cluster.workers;
        let blocked = workers.blocked + workers.quarantined + workers.poisoned + workers.lost;
        Some(WorkerPool { capacity: workers.capacity, held: workers.held, blocked })
    }

    fn not_older_than(&self, age: Duration) -> Option<Cluster> {
        let last = self.last.load_full()?;
        (boot_time() <= last.seen + age).then(|| last.cluster.clone())
    }
}

async fn look(node: &Node) -> Result<Cluster, Error> {
    let store = node.store();
    let now = unix_ms();
    let look = store.read(&[]).await?;
    let entries = store.list(Group::Workers).await?;
    let (workers, nodes) = match look.meta {
        Some(meta) => {
            let mut judge = Claim::to_judge(&meta, now);
            // Whatever keeps everybody out is a quarantine to those outside.
            judge.quarantine = judge.quarantine.max(rules::history_floor(&judge, &look.history));
            let workers = count(&entries, &meta.value, &judge, &look.history);
            (workers, nodes(&entries, &judge, &look.history))
        }
        None => (WorkerCounts::default(), Vec::new()),
    };
    let mut cluster = Cluster::new(node.info().namespace.to_string(), nodes);
    cluster.observed = rfc3339::Instant::from_unix_ms(now.cast_signed()).to_string();
    cluster.workers = workers;
    Ok(cluster)
}

fn count(entries: &[Entry], meta: &Meta, judge: &Claim, history: &History) -> WorkerCounts {
    let tally = SlotCounts::of(entries, meta, judge, history);
    let SlotCounts { never_used, held, free, blocked, quarantined, poisoned, lost, .. } = tally;
    // A quarantine covers those that nobody ever had too, until times may run ahead into it.
    let (resting, ready) = if judge.quarantine > judge.now + rules::RUN_AHEAD_MS {
        (never_used, 0)
    } else {
        (0, never_used)
    };
    let mut counts = WorkerCounts::default();
    counts.capacity = tally.capacity();
    counts.held = held;
    counts.free = free + ready;
    counts.blocked = blocked;
    counts.quarantined = quarantined + resting;
    counts.poisoned = poisoned;
    counts.lost = lost;
    counts
}

fn nodes(entries: &[Entry], judge: &Claim, history: &History) -> Vec<ClusterNode> {
    let mut nodes: BTreeMap<String, ClusterNode> = BTreeMap::new();
    let mut listening: BTreeMap<String, String> = BTreeMap::new();
    for entry in entries {
        let (Some(worker), Found::Known(record)) = (entry.slot.number(), &entry.found) else {
            continue;
        };
        if SlotState::of(entry, judge, history) != SlotState::Held {
            continue;
        }
        let info = |name: &str| record.info.get(name).cloned();
        if let Some(at) = info(LISTEN) {
            listening.insert(record.holder.clone(), at);
        }
        let node = nodes.entry(record.holder.clone()).or_insert_with(|| {
            let mut node = ClusterNode::new(&record.holder);
            node.advertise = info(ADVERTISE);
            node.region = info("region");
            node.zone = info("zone");
            node.host = info("host");
            node.version = info("version");
            node
        });
        node.workers.push(worker);
    }
    let mut nodes: Vec<ClusterNode> = nodes.into_values().collect();
    for node in &mut nodes {
        node.workers.sort_unstable();
    }
    fill_in_addresses(&mut nodes, &listening);
    nodes
}

/// Nodes that advertise nothing are reached where they listen. Others than those of the same machine
/// do not reach a loopback address: it is told only if all nodes are on one.
fn fill_in_addresses(nodes: &mut [ClusterNode], listening: &BTreeMap<String, String>) {
    let known = nodes.iter().filter_map(|node| {
        node.advertise.as_deref().or_else(|| listening.get(&node.name).map(String::as_str))
    });
    let is_one_machine = known.into_iter().all(is_loopback);
    for node in nodes.iter_mut().filter(|node| node.advertise.is_none()) {
        let at = listening.get(&node.name).filter(|at| is_one_machine || !is_loopback(at));
        node.advertise = at.cloned();
    }
}

fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<hyper::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Where the nodes of a namespace are, and no more of them.
#[derive(Debug, Serialize)]
pub(crate) struct Addresses {
    namespace: String,
    observed: String,
    nodes: Vec<NodeAddress>,
    scopes: Vec<ScopeInfo>,
}

#[derive(Debug, Serialize)]
struct NodeAddress {
    name: String,
    advertise: Option<String>,
    zone: Option<String>,
}

impl From<Cluster> for Addresses {
    fn from(cluster: Cluster) -> Self {
        let Cluster { namespace, observed, nodes, scopes, .. } = cluster;
        let nodes = nodes.into_iter().map(|node| NodeAddress {
            name: node.name,
            advertise: node.advertise,
            zone: node.zone,
        });
        Self { namespace, observed, nodes: nodes.collect(), scopes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(nodes: &[(&str, Option<&str>, Option<&str>)]) -> Vec<Option<String>> {
        let listening = nodes.iter().filter_map(|(name, _, listen)| Some((*name, (*listen)?)));
        let listening = listening.map(|(name, at)| (name.to_owned(), at.to_owned())).collect();
        let node = |(name, advertise, _): &(&str, Option<&str>, Option<&str>)| {
            let mut node = ClusterNode::new(*name);
            node.advertise = advertise.map(ToOwned::to_owned);
            node
        };
        let mut nodes: Vec<ClusterNode> = nodes.iter().map(node).collect();
        fill_in_addresses(&mut nodes, &listening);
        nodes.into_iter().map(|node| node.advertise).collect()
    }

    #[test]
    fn a_node_that_advertises_nothing_is_reached_where_it_listens() {
        let (here, also_here) = ("http://127.0.0.1:1", "http://[::1]:2");
        let (far, named) = ("https://10.0.0.7:7780", "https://ids.example:7780");
        let text = |url: &str| Some(url.to_owned());
        assert_eq!(addresses(&[("a", Some(named), Some(far))]), [text(named)]);
        assert_eq!(addresses(&[("a", None, Some(far)), ("b", None, None)]), [text(far), None]);
        let alone = addresses(&[("a", None, Some(here)), ("b", None, Some(also_here))]);
        assert_eq!(alone, [text(here), text(also_here)], "all are on one machine");
        let mixed = addresses(&[("a", None, Some(here)), ("b", None, Some(far))]);
        assert_eq!(mixed, [None, text(far)], "b does not reach a");
    }
}
