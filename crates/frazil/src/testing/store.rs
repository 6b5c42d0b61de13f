//! A store that a test hurts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use frazil_coord::MemoryStore;
use frazil_coord::{
    Changes, Commit, Committed, Entry, Error, ErrorKind, FreeSlots, Group, Guarantees, Look, Meta,
    Put, Slot, Store, Version, Wanted, Watched,
};

/// A store in memory that can fall silent and forget. Clones are the same store, so that several
/// nodes of a test may share it.
#[derive(Clone, Debug, Default)]
pub struct TestStore {
    inner: MemoryStore,
    is_stopped: Arc<AtomicBool>,
}

impl TestStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The store for [`Builder::store_handle`](crate::Builder::store_handle).
    #[must_use]
    pub fn handle(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    /// From now on it cannot be reached. What it keeps stays.
    pub fn stop(&self) {
        // Relaxed, here and below: the word stands for itself.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// It can be reached again.
    pub fn resume(&self) {
        self.is_stopped.store(false, Ordering::Relaxed);
    }

    /// Forgets what it knows of a worker: whoever holds it has lost it, and learns so with the next
    /// renewal.
    pub fn lose_worker(&self, worker: u32) {
        self.inner.lose(&Slot::worker(worker));
    }

    /// Ends the presence of whoever holds a worker, as if it had not been renewed in time: from now
    /// on another may take it.
    pub fn expire_worker(&self, worker: u32) {
        self.inner.expire(&Slot::worker(worker));
    }

    fn reach(&self, act: &'static str) -> Result<&MemoryStore, Error> {
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Unavailable, act, self, "the test has stopped it"));
        }
        Ok(&self.inner)
    }
}

// The methods that are not here do for a store in memory what they do by default.
#[async_trait]
impl Store for TestStore {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        self.reach("read")?.read(slots).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.reach("list")?.list(group).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        self.reach("look for free workers")?.free_slots(wanted).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        self.reach(commit.act.word())?.commit(commit).await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.reach("write meta")?.put_meta(expected, meta).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.reach("forget")?.forget(slot, version).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.reach("watch")?.watch(watched).await
    }

    fn changes_max(&self) -> usize {
        self.inner.changes_max()
    }
}

impl fmt::Display for TestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
