//! A store inside the process: for tests, and as the shortest complete example of a store.

mod registry;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::choose::candidates;
use crate::error::Error;
use crate::guarantees::{Guarantees, Strength};
use crate::namespace::Namespace;
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::rules;
use crate::slot::{Group, Slot};
use crate::store::{
    Acquired, Announcer, Ask, Census, Changes, Choice, Claim, Entry, Extended, Found, Loss,
    Presence, Put, Released, Store, Tenure,
};
use crate::time::boot_time;

/// Keeps everything in memory. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    meta: Option<Versioned<Meta>>,
    cells: BTreeMap<Slot, Cell>,
    writes: u64,
    listeners: Vec<(Group, Announcer)>,
}

/// A slot that was used before.
struct Cell {
    version: Version,
    /// `None` once it was forgotten.
    record: Option<Record>,
    /// Until when somebody is present, in boot time.
    present_until: Duration,
}

impl MemoryStore {
    /// An empty store of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The one store that a name and a namespace have in this process, for as long as it runs.
    /// `memory:` is the empty name.
    #[must_use]
    pub fn named(name: &str, namespace: &Namespace) -> Self {
        Self { shared: registry::shared(name, namespace) }
    }

    /// The namespaces that were opened under a name in this process.
    pub(crate) fn namespaces(name: &str) -> Vec<Namespace> {
        registry::namespaces(name)
    }

    /// Ends the presence in a slot, as if its time had run out.
    pub fn expire(&self, slot: &Slot) {
        let mut state = self.lock();
        if let Some(cell) = state.cells.get_mut(slot) {
            cell.present_until = Duration::ZERO;
        }
        state.announce(slot.group());
    }

    /// Forgets everything.
    pub fn wipe(&self) {
        let mut state = self.lock();
        state.meta = None;
        state.cells.clear();
        for group in Group::ALL {
            state.announce(group);
        }
    }

    /// Forgets one record, and remembers that there was one.
    pub fn lose(&self, slot: &Slot) {
        if let Some(cell) = self.lock().cells.get_mut(slot) {
            cell.record = None;
            cell.present_until = Duration::ZERO;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything can panic.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_version(&mut self) -> Version {
        self.writes += 1;
        Version(self.writes)
    }

    fn announce(&mut self, changed: Group) {
        self.listeners.retain(|(group, announcer)| *group != changed || announcer.announce());
    }

    fn write(&mut self, slot: &Slot, record: &Record, present_until: Duration) -> Version {
        let version = self.next_version();
        let cell = Cell { version, record: Some(record.clone()), present_until };
        self.cells.insert(slot.clone(), cell);
        self.announce(slot.group());
        version
    }

    fn entry(&self, slot: &Slot) -> Entry {
        let now = boot_time();
        let slot = slot.clone();
        let Some(cell) = self.cells.get(&slot) else {
            let (version, found, presence) = (Version(0), Found::New, Presence::Free);
            return Entry { slot, version, found, presence };
        };
        let presence = match cell.present_until.checked_sub(now) {
            None | Some(Duration::ZERO) => Presence::Free,
            expires_in => Presence::Held { expires_in },
        };
        let found = cell.record.clone().map_or(Found::Lost, Found::Known);
        Entry { slot, version: cell.version, found, presence }
    }

    /// The tenure that a repeated claim has got already.
    fn served(&self, claim: &Claim) -> Option<Tenure> {
        self.cells.iter().find_map(|(slot, cell)| {
            let record = cell.record.as_ref().filter(|r| r.nonce == Some(claim.nonce))?;
            Some(rules::tenure(claim, slot.clone(), cell.version, record))
        })
    }

    /// Takes the slot if it is free and still what was read.
    fn take(&mut self, slot: &Slot, read: Version, claim: &Claim) -> Acquired {
        let entry = self.entry(slot);
        if entry.version != read || entry.presence != Presence::Free {
            return Acquired::Taken;
        }
        match rules::acquire(&entry.found, claim) {
            Ok(record) => {
                let version = self.write(slot, &record, boot_time() + claim.ttl);
                Acquired::Held(rules::tenure(claim, entry.slot, version, &record))
            }
            Err(outlook) => Acquired::Full(Census::of(outlook)),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            store: "memory of one process".into(),
            uniqueness: Strength::Unconditional,
            because: "one process, one lock".into(),
            leadership: "as in every store with time-outs: overlap after a pause".into(),
            token: "strictly increasing while the process lives".into(),
            voided_by: vec!["the end of the process".into()],
            warnings: vec!["nothing survives the process: for tests only".into()],
        }
    }

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        Ok(self.lock().meta.clone())
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let mut state = self.lock();
        if state.meta.as_ref().map(|meta| meta.version) != expected {
            return Ok(Put::Conflict);
        }
        let version = state.next_version();
        state.meta = Some(Versioned { version, value: meta.clone() });
        Ok(Put::Done(version))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let state = self.lock();
        let slots = state.cells.keys().filter(|slot| slot.group() == group);
        Ok(slots.map(|slot| state.entry(slot)).collect())
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        let mut state = self.lock();
        // Before meta is looked at: a claim that was served stays served.
        if let Some(tenure) = state.served(claim) {
            return Ok(Acquired::Held(tenure));
        }
        if state.meta.as_ref().map(|meta| meta.version) != Some(claim.meta) {
            return Ok(Acquired::MetaMoved);
        }
        match &claim.choice {
            Choice::This(slot, read) => Ok(state.take(slot, *read, claim)),
            Choice::Any { first, last, favourite } => {
                let entries: Vec<_> = state.cells.keys().map(|slot| state.entry(slot)).collect();
                let (best, census) = candidates(entries, *first, *last, *favourite, claim);
                Ok(match best.first() {
                    Some(best) => state.take(&best.slot, best.version, claim),
                    None => Acquired::Full(census),
                })
            }
        }
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        let mut state = self.lock();
        let known = state.cells.get(&tenure.slot).and_then(|cell| cell.record.clone());
        let Some(record) = known.filter(|_| state.meta.is_some()) else {
            return Ok(Extended::Lost(Loss::Vanished));
        };
        Ok(match rules::extend(&record, tenure, ask) {
            Ok(record) => {
                let version = state.write(&tenure.slot, &record, boot_time() + ask.ttl);
                Extended::Held(Tenure { version, horizon: record.horizon, ..tenure.clone() })
            }
            Err(loss) => Extended::Lost(loss),
        })
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        let mut state = self.lock();
        let known = state.cells.get(&tenure.slot).and_then(|cell| cell.record.clone());
        match known.map(|record| rules::release(&record, tenure, last)) {
            Some(Ok(record)) => {
                state.write(&tenure.slot, &record, Duration::ZERO);
                Ok(Released::Done)
            }
            Some(Err(_)) | None => Ok(Released::NotHeld),
        }
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        let mut state = self.lock();
        let entry = state.entry(slot);
        if entry.version != expected || entry.presence != Presence::Free {
            return Ok(Put::Conflict);
        }
        Ok(Put::Done(state.write(slot, record, Duration::ZERO)))
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        let (announcer, changes) = Changes::channel();
        self.lock().listeners.push((group, announcer));
        Ok(changes)
    }
}

impl fmt::Display for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory:")
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
