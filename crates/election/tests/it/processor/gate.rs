//! A way to a store that can be closed, for some requests or for all.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use frazil_coord::{
    Act, Changes, Commit, Committed, Entry, Error, ErrorKind, FreeSlots, Group, Guarantees, Look,
    Meta, Nonce, Put, Slot, Store, Version, Wanted, Watched, Written,
};
use tokio::sync::watch;

/// A store behind a gate.
pub(crate) struct Gate {
    store: Arc<dyn Store>,
    rules: watch::Sender<Rules>,
}

/// What does not pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Nothing does; it fails.
    pub(crate) fails: bool,
    /// Releases of these slots hang.
    pub(crate) holds_releases: BTreeSet<String>,
    /// Replies to claims of these slots hang.
    pub(crate) holds_wins: BTreeSet<String>,
    /// Claims that were carried out and whose replies hang.
    pub(crate) held_wins: usize,
}

impl Gate {
    pub(crate) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, rules: watch::Sender::new(Rules::default()) })
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Rules)) {
        self.rules.send_modify(change);
    }

    pub(crate) fn rules(&self) -> Rules {
        self.rules.borrow().clone()
    }

    fn pass(&self, act: &'static str) -> Result<(), Error> {
        match self.rules.borrow().fails {
            true => Err(Error::new(ErrorKind::Unavailable, act, self, "the gate is closed")),
            false => Ok(()),
        }
    }

    async fn held(&self, holds: impl Fn(&Rules) -> bool) {
        let mut rules = self.rules.subscribe();
        rules.wait_for(|rules| !holds(rules)).await.unwrap();
    }
}

#[async_trait]
impl Store for Gate {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    fn is_bound_to_process(&self) -> bool {
        self.store.is_bound_to_process()
    }

    fn is_in_place(&self, slot: &Slot, nonce: Nonce) -> bool {
        self.store.is_in_place(slot, nonce)
    }

    fn changes_max(&self) -> usize {
        self.store.changes_max()
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        self.pass("read")?;
        self.store.read(slots).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.pass("list slots")?;
        self.store.list(group).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        self.pass("look for free workers")?;
        self.store.free_slots(wanted).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        self.pass(commit.act.word())?;
        let is_of = |names: &BTreeSet<String>| {
            commit.changes.iter().any(|change| names.contains(change.slot.name()))
        };
        if commit.act == Act::Release {
            self.held(|rules| is_of(&rules.holds_releases)).await;
        }
        let committed = self.store.commit(commit).await?;
        if matches!((commit.act, &committed), (Act::Acquire, Committed::Done { .. }))
            && is_of(&self.rules().holds_wins)
        {
            self.change(|rules| rules.held_wins += 1);
            self.held(|rules| is_of(&rules.holds_wins)).await;
            self.change(|rules| rules.held_wins -= 1);
        }
        Ok(committed)
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.pass("write meta")?;
        self.store.put_meta(expected, meta).await
    }

    async fn settle(&self, written: &Written) -> Result<bool, Error> {
        self.pass("settle")?;
        self.store.settle(written).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.pass("forget")?;
        self.store.forget(slot, version).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.pass("watch")?;
        self.store.watch(watched).await
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} behind a gate", self.store)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
