//! The keys in force: followed in the store, if they are there, and their quotas for all nodes divided
//! by those that live.
//!
//! While the store is away the last keys seen stay in force, and their age is told.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use frazil::Node;
use frazil::coord::internal::Watching;
use frazil::coord::internal::time::boot_time;
use frazil::coord::{Slot, Store, Version, Watched};
use frazil_wire::Cluster;
use tokio::sync::{Notify, watch};

use super::{KeyEntry, Keyring, LiveNodes, StoredKeys, StoredKeysError};
use crate::app::Shared;
use crate::net::tls::Tls;
use crate::node::condition::Condition;

/// Between two looks at the list while no watch announces its changes: well below the second within
/// which a revocation is to reach every node.
const LOOK_UNWATCHED: Duration = Duration::from_millis(400);
/// The same while a watch does: for announcements that were lost with a connection that seems well.
const LOOK_WATCHED: Duration = Duration::from_secs(5);
/// Between two counts of the nodes that live.
const COUNT_NODES: Duration = Duration::from_secs(3);
/// Between two log lines about keys that grow old.
const REMIND: Duration = Duration::from_mins(1);
/// Keys that are older than this are warned of: nothing but trouble makes them so old.
pub(crate) const OLD: Duration = Duration::from_secs(15);

/// What is known of the keys beside the keys themselves.
#[derive(Debug)]
pub(crate) struct StoredKeysStatus {
    is_stored: bool,
    /// When the list in the store was last read, in milliseconds of boot time; 0 before that.
    read_ms: AtomicU64,
    nodes: AtomicU32,
    /// That other keys are in force.
    replaced: Notify,
}

/// How old the keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyListAge {
    /// They are not in the store.
    NotInStore,
    /// The store has not shown them yet.
    Unread,
    /// The store was last read so long ago.
    Read(Duration),
}

impl StoredKeysStatus {
    pub(crate) fn new(is_stored: bool) -> Self {
        let (read_ms, nodes) = (AtomicU64::new(0), AtomicU32::new(1));
        Self { is_stored, read_ms, nodes, replaced: Notify::new() }
    }

    pub(crate) fn age(&self) -> KeyListAge {
        // Relaxed, here and below: a number that nothing else goes by.
        match (self.is_stored, self.read_ms.load(Ordering::Relaxed)) {
            (false, _) => KeyListAge::NotInStore,
            (true, 0) => KeyListAge::Unread,
            (true, read) => {
                KeyListAge::Read(boot_time().saturating_sub(Duration::from_millis(read)))
            }
        }
    }

    /// What to say where somebody looks for what is not well.
    pub(crate) fn warning(&self) -> Option<String> {
        match self.age() {
            KeyListAge::Unread => Some("the API keys were not read from the store yet".to_owned()),
            KeyListAge::Read(age) if age > OLD => Some(format!(
                "the API keys are {} s old: the store does not show them, and what was revoked since \
                 still opens",
                age.as_secs()
            )),
            KeyListAge::NotInStore | KeyListAge::Read(_) => None,
        }
    }

    pub(crate) fn nodes(&self) -> LiveNodes {
        NonZeroU32::new(self.nodes.load(Ordering::Relaxed)).unwrap_or(NonZeroU32::MIN)
    }

    fn note_read(&self) {
        let now = u64::try_from(boot_time().as_millis()).unwrap_or(u64::MAX);
        self.read_ms.store(now.max(1), Ordering::Relaxed);
    }
}

/// Puts a list of keys in force, and says how many they are.
pub(crate) fn put_in_force(shared: &Shared, entries: Vec<KeyEntry>) -> usize {
    let before = shared.authenticator.keys();
    let ring = Keyring::new(entries, before.as_deref(), shared.stored_keys_status.nodes());
    let count = ring.len();
    shared.authenticator.replace(ring);
    shared.stored_keys_status.replaced.notify_one();
    warn_of_certificates(shared);
    count
}

/// Warns where keys in force name certificates that no client is asked for.
pub(crate) fn warn_of_certificates(shared: &Shared) {
    let is_asked = shared.tls.as_ref().is_some_and(Tls::asks_for_certificates);
    let are_named =
        shared.authenticator.keys().as_deref().is_some_and(|keys| keys.has_certificates());
    if are_named && !is_asked {
        tracing::warn!(
            "keys name certificates, and no client is asked for one: set --tls-client-ca"
        );
    }
}

/// Follows the list in the store and the number of nodes, from when the store was reached on. Ends with
/// the node, or when it is aborted.
pub(crate) async fn run(shared: Arc<Shared>, mut condition: watch::Receiver<Condition>) {
    if condition.wait_for(|_| shared.issuer.node().is_some()).await.is_err() {
        return;
    }
    let Some(node) = shared.issuer.node() else { return };
    let stored_keys_status = async {
        if shared.stored_keys_status.is_stored {
            follow(&shared, node.store()).await;
        }
    };
    tokio::join!(stored_keys_status, divide(&shared, node));
}

/// The watch is begun before the look: what changes after the look is announced.
async fn follow(shared: &Shared, store: &dyn Store) {
    let mut watching = Watching::new(Watched::Slot(Slot::api_keys()));
    let mut list = List::default();
    loop {
        watching.begin(store, boot_time()).await;
        let is_known = list.note(shared, store, StoredKeys::load(store).await);
        let pause = if watching.is_on() && is_known { LOOK_WATCHED } else { LOOK_UNWATCHED };
        tokio::select! {
            () = watching.changed_or_ended() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// What was last seen of the list.
#[derive(Debug, Default)]
struct List {
    seen: Option<StoredKeys>,
    /// What was last logged as wrong, and when.
    wrong: Option<(String, Duration)>,
}

impl List {
    /// Puts what was read in force, if it makes sense. `false`: what was there before stays in force.
    fn note(
        &mut self,
        shared: &Shared,
        store: &dyn Store,
        read: Result<StoredKeys, StoredKeysError>,
    ) -> bool {
        let judged = read.and_then(|read| {
            let is_gone = read.text.is_none() && self.has_text();
            let entries = if is_gone { Err(StoredKeysError::Lost) } else { read.entries() }?;
            Ok((read, entries))
        });
        match judged {
            Ok((read, entries)) => {
                shared.stored_keys_status.note_read();
                if self.wrong.take().is_some() {
                    tracing::info!("the API keys are read from the store again");
                }
                if self.seen.as_ref() != Some(&read) {
                    self.take_over(shared, store, read, entries);
                }
                true
            }
            Err(error) => {
                self.tell(shared, &error);
                false
            }
        }
    }

    fn has_text(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.text.is_some())
    }

    fn take_over(
        &mut self,
        shared: &Shared,
        store: &dyn Store,
        read: StoredKeys,
        entries: Vec<KeyEntry>,
    ) {
        let before = self.seen.as_ref().map_or(Version(0), |seen| seen.version);
        if read.version < before {
            tracing::warn!(
                "the API keys in the store are older than those before: if it was restored from a \
                 backup, revoke again what was revoked since (frazil key ls --keys store)"
            );
        }
        let count = put_in_force(shared, entries);
        match count {
            0 => {
                let namespace = &shared.namespace;
                tracing::warn!(
                    "the store has no API key: nobody is let in but probes; make one: frazil key new \
                     --keys store --store {store} --namespace {namespace} --name ops --role admin"
                );
            }
            _ => tracing::info!(keys = count, "the API keys were read from the store"),
        }
        self.seen = Some(read);
    }

    /// Says once, and then from time to time, that the keys in force grow old.
    fn tell(&mut self, shared: &Shared, error: &StoredKeysError) {
        let (why, now) = (format!("{error:#}"), boot_time());
        let is_new = match &self.wrong {
            Some((told, at)) => *told != why || now >= *at + REMIND,
            None => true,
        };
        if !is_new {
            return;
        }
        match shared.stored_keys_status.age() {
            KeyListAge::Read(age) => tracing::warn!(
                age_seconds = age.as_secs(),
                "the API keys cannot be read from the store, and the last ones seen stay in force: \
                 {why}"
            ),
            KeyListAge::Unread | KeyListAge::NotInStore => tracing::warn!(
                "the API keys cannot be read from the store, and nobody is let in but probes: {why}"
            ),
        }
        self.wrong = Some((why, now));
    }
}

/// Counts the nodes from time to time where a quota is for all of them. While the store is away they are
/// as many as they were.
async fn divide(shared: &Shared, node: &Node) {
    loop {
        let is_needed =
            shared.authenticator.keys().as_deref().is_some_and(|keys| keys.has_cluster_quotas());
        if is_needed && let Ok(cluster) = shared.cluster_cache.cluster(node).await {
            let nodes = live_nodes(&cluster, &shared.name);
            shared.stored_keys_status.nodes.store(nodes, Ordering::Relaxed);
            if let Some(keys) = shared.authenticator.keys().as_deref() {
                keys.divide(shared.stored_keys_status.nodes());
            }
        }
        tokio::select! {
            () = shared.stored_keys_status.replaced.notified() => {}
            () = tokio::time::sleep(COUNT_NODES) => {}
        }
    }
}

/// Those who hold workers, and this one, which may be about to.
fn live_nodes(cluster: &Cluster, own: &str) -> u32 {
    let others = cluster.nodes.iter().filter(|node| node.name != own).count();
    u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1)
}
