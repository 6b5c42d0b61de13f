//! A store whose commits lose their replies from now on: the reads before them do not.

use std::fmt;

use async_trait::async_trait;
use frazil_coord::internal::stores::redis::RedisStore;
use frazil_coord::{
    Changes, Commit, Committed, Entry, Error, FreeSlots, Group, Guarantees, Look, Meta, Put, Slot,
    Store, Version, Wanted, Watched,
};
use frazil_rig::Proxy;

pub(crate) struct Deaf<'a> {
    pub(crate) store: &'a RedisStore,
    /// Between the store and its server.
    pub(crate) proxy: &'a Proxy,
}

#[async_trait]
impl Store for Deaf<'_> {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        self.store.read(slots).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.store.list(group).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        self.store.free_slots(wanted).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        self.proxy.drop_replies();
        self.store.commit(commit).await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.store.put_meta(expected, meta).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.store.forget(slot, version).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.store.watch(watched).await
    }

    fn changes_max(&self) -> usize {
        self.store.changes_max()
    }
}

impl fmt::Display for Deaf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl fmt::Debug for Deaf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deaf({})", self.store)
    }
}
