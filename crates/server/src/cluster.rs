//! The namespace as this node sees the store.

use std::collections::BTreeMap;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use std::sync::Arc;

use frazil::Node;
use frazil::coord::time::{boot_time, unix_ms};
use frazil::coord::{Claim, Entry, Error, Found, Group, History, Meta, Standing, Tally, rules};
use frazil_id::rfc3339;
use frazil_wire::{ApiError, Cluster, ClusterNode, Reason, WorkerCounts};
use tokio::sync::Mutex;

/// The store is listed at most this often, however many ask.
const FRESH: Duration = Duration::from_secs(1);
/// How old the numbers of metrics may be.
const FRESH_ENOUGH: Duration = Duration::from_secs(10);
/// How long metrics wait for a store that is slow; without it they show what was last seen.
const METRICS_PATIENCE: Duration = Duration::from_millis(500);

/// Looks at the store for everybody who asks, one look at a time.
#[derive(Debug, Default)]
pub(crate) struct Lookout {
    last: ArcSwapOption<Sight>,
    looking: Mutex<()>,
}

#[derive(Debug)]
struct Sight {
    seen: Duration,
    cluster: Cluster,
}

/// The workers of a namespace, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) capacity: u32,
    pub(crate) held: u32,
    pub(crate) blocked: u32,
}

impl Lookout {
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
        self.last.store(Some(Arc::new(Sight { seen: boot_time(), cluster: cluster.clone() })));
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
    pub(crate) fn pool(&self) -> Option<Pool> {
        let last = self.last.load();
        let workers = last.as_ref()?.cluster.workers;
        let blocked = workers.blocked + workers.quarantined + workers.poisoned + workers.lost;
        Some(Pool { capacity: workers.capacity, held: workers.held, blocked })
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
    Ok(Cluster {
        namespace: node.info().namespace.to_string(),
        observed: rfc3339::Instant::from_unix_ms(now.cast_signed()).to_string(),
        nodes,
        workers,
        scopes: Vec::new(),
    })
}

fn count(entries: &[Entry], meta: &Meta, judge: &Claim, history: &History) -> WorkerCounts {
    let tally = Tally::of(entries, meta, judge, history);
    let Tally { never_used, held, free, blocked, quarantined, poisoned, lost } = tally;
    // A quarantine covers those that nobody ever had too, until times may run ahead into it.
    let (resting, ready) = if judge.quarantine > judge.now + rules::RUN_AHEAD_MS {
        (never_used, 0)
    } else {
        (0, never_used)
    };
    WorkerCounts {
        capacity: tally.capacity(),
        held,
        free: free + ready,
        blocked,
        quarantined: quarantined + resting,
        poisoned,
        lost,
    }
}

fn nodes(entries: &[Entry], judge: &Claim, history: &History) -> Vec<ClusterNode> {
    let mut nodes: BTreeMap<String, ClusterNode> = BTreeMap::new();
    for entry in entries {
        let (Some(worker), Found::Known(record)) = (entry.slot.number(), &entry.found) else {
            continue;
        };
        if Standing::of(entry, judge, history) != Standing::Held {
            continue;
        }
        let info = |name: &str| record.info.get(name).cloned();
        let node = nodes.entry(record.holder.clone()).or_insert_with(|| ClusterNode {
            name: record.holder.clone(),
            advertise: info("advertise"),
            region: info("region"),
            host: info("host"),
            version: info("version"),
            workers: Vec::new(),
        });
        node.workers.push(worker);
    }
    for node in nodes.values_mut() {
        node.workers.sort_unstable();
    }
    nodes.into_values().collect()
}
