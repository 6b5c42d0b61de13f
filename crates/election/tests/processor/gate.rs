//! A way to a store that can be closed, for some requests or for all.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use frazil_coord::{
    Acquired, Ask, Changes, Choice, Claim, Entry, Error, ErrorKind, Extended, Group, Guarantees,
    Meta, Put, Record, Released, Slot, Store, Tenure, UnixMs, Version, Versioned,
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

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        self.pass("read meta")?;
        self.store.meta().await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.pass("write meta")?;
        self.store.put_meta(expected, meta).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.pass("list slots")?;
        self.store.list(group).await
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        self.pass("acquire")?;
        let acquired = self.store.acquire(claim).await?;
        if let (Choice::This(slot, _), Acquired::Held(_)) = (&claim.choice, &acquired)
            && self.rules().holds_wins.contains(slot.name())
        {
            self.change(|rules| rules.held_wins += 1);
            self.held(|rules| rules.holds_wins.contains(slot.name())).await;
            self.change(|rules| rules.held_wins -= 1);
        }
        Ok(acquired)
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        self.pass("extend")?;
        self.store.extend(tenure, ask).await
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        self.pass("release")?;
        self.held(|rules| rules.holds_releases.contains(tenure.slot.name())).await;
        self.store.release(tenure, last).await
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        self.pass("put a record")?;
        self.store.put(slot, expected, record).await
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        self.pass("watch")?;
        self.store.watch(group).await
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
