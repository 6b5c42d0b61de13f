//! A store inside the process: for tests, and as the shortest complete example of a store.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;

use crate::error::Error;
use crate::guarantees::{Guarantees, Strength};
use crate::namespace::Namespace;
use crate::record::{Meta, Record, Version, Versioned};
use crate::slot::{Group, Slot};
use crate::store::{
    Announcer, Change, Changes, Commit, Committed, Entry, Found, FreeSlots, Look, Presence,
    PresenceChange, Present, Put, Store, Wanted, Watched,
};
use crate::sync::lock;
use crate::time::boot_time;

/// Keeps everything in memory. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryStore {
    /// The name and the namespace that it is found by; `None` of one that is nobody else's.
    place: Option<(String, Namespace)>,
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    meta: Option<Versioned<Meta>>,
    cells: BTreeMap<Slot, Cell>,
    writes: u64,
    listeners: Vec<(Watched, Announcer)>,
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
        let place = Some((name.to_owned(), namespace.clone()));
        Self { place, shared: shared(name, namespace) }
    }

    /// Ends the presence in a slot, as if its time had run out.
    pub fn expire(&self, slot: &Slot) {
        let mut state = self.lock();
        if let Some(cell) = state.cells.get_mut(slot) {
            cell.present_until = Duration::ZERO;
        }
        state.announce(slot);
    }

    /// Forgets everything.
    pub fn wipe(&self) {
        let mut state = self.lock();
        state.meta = None;
        state.cells.clear();
        state.listeners.retain(|(_, announcer)| announcer.announce());
    }

    /// Forgets one record, and remembers that there was one.
    pub fn lose(&self, slot: &Slot) {
        if let Some(cell) = self.lock().cells.get_mut(slot) {
            cell.record = None;
            cell.present_until = Duration::ZERO;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.shared)
    }
}

impl State {
    fn next_version(&mut self) -> Version {
        self.writes += 1;
        Version(self.writes)
    }

    fn announce(&mut self, slot: &Slot) {
        self.listeners.retain(|(watched, announcer)| !watched.covers(slot) || announcer.announce());
    }

    fn entry(&self, slot: &Slot) -> Entry {
        let Some(cell) = self.cells.get(slot) else { return Entry::unused(slot.clone()) };
        let presence = match cell.present_until.checked_sub(boot_time()) {
            None | Some(Duration::ZERO) => Presence::Free,
            expires_in => Presence::Held { expires_in },
        };
        let found = cell.record.clone().map_or(Found::Lost, Found::Known);
        Entry { slot: slot.clone(), version: cell.version, found, presence }
    }

    fn look<'a>(&self, slots: impl Iterator<Item = &'a Slot>) -> Look {
        let entries = slots.map(|slot| self.entry(slot)).collect();
        Look { meta: self.meta.clone(), entries, ..Look::default() }
    }

    /// The slot that a commit of several changes was served with before.
    fn served(&self, commit: &Commit) -> Option<&Slot> {
        let nonce = Some(commit.served_once()?);
        let carries = |cell: &Cell| cell.record.as_ref().is_some_and(|r| r.nonce == nonce);
        self.cells.iter().find(|(_, cell)| carries(cell)).map(|(slot, _)| slot)
    }

    fn is_possible(&self, change: &Change) -> bool {
        let entry = self.entry(&change.slot);
        let may_be_present = match change.present {
            Present::Nobody => entry.presence == Presence::Free,
            // Nobody else can be: whoever takes a slot writes its nonce.
            Present::Holder => true,
        };
        may_be_present && change.is_as_read(entry.version, &entry.found)
    }

    fn write(&mut self, change: &Change) -> Version {
        let version = self.next_version();
        let present_until = match change.presence_change {
            PresenceChange::For(ttl) => boot_time() + ttl,
            PresenceChange::Ended => Duration::ZERO,
        };
        let cell = Cell { version, record: Some(change.record.clone()), present_until };
        self.cells.insert(change.slot.clone(), cell);
        self.announce(&change.slot);
        version
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

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        Ok(self.lock().look(slots.iter()))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let state = self.lock();
        let slots = state.cells.keys().filter(|slot| slot.group() == group);
        Ok(state.look(slots).entries)
    }

    async fn free_slots(&self, _wanted: &Wanted) -> Result<FreeSlots, Error> {
        let state = self.lock();
        let workers = state.cells.keys().filter(|slot| slot.group() == Group::Workers);
        Ok(FreeSlots::of_all(state.look(workers)))
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        let mut state = self.lock();
        if let Some(slot) = state.served(commit) {
            return Ok(Committed::Conflict(state.look([slot].into_iter())));
        }
        let is_meta = |read| state.meta.as_ref().map(|meta| meta.version) == Some(read);
        let mut possible = commit.changes.iter();
        let Some(index) = commit
            .meta
            .is_none_or(is_meta)
            .then(|| possible.position(|change| state.is_possible(change)))
            .flatten()
        else {
            let slots = commit.changes.iter().map(|change| &change.slot);
            return Ok(Committed::Conflict(state.look(slots)));
        };
        let version = state.write(&commit.changes[index]);
        let look = state.look(std::iter::empty());
        Ok(Committed::Done { index, version, expires: None, look })
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

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        let mut state = self.lock();
        let entry = state.entry(slot);
        let is_worker = slot.group() == Group::Workers;
        if is_worker || entry.version != version || entry.presence != Presence::Free {
            return Ok(Put::Conflict);
        }
        state.cells.remove(slot);
        state.announce(slot);
        Ok(Put::Done(state.next_version()))
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        let (announcer, changes) = Changes::channel();
        self.lock().listeners.push((watched.clone(), announcer));
        Ok(changes)
    }

    async fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Error> {
        let Some((name, own)) = &self.place else { return Ok(Vec::new()) };
        let others = namespaces(name).into_iter().filter(|other| other != own);
        let metas = others.take(most).filter_map(|other| {
            let meta = Self::named(name, &other).lock().meta.clone()?;
            Some((other, meta.value))
        });
        Ok(metas.collect())
    }

    fn namespace(&self) -> Option<&Namespace> {
        self.place.as_ref().map(|(_, namespace)| namespace)
    }

    fn changes_max(&self) -> usize {
        8
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

/// The stores of this process by name: whoever opens the same URL meets in the same store.
type Stores = HashMap<(String, Namespace), Arc<Mutex<State>>>;

/// Kept until the process ends, open or not: a store that was forgotten with its last user would
/// give the next one the same worker with no floor, and the IDs of the last tick again.
static STORES: LazyLock<Mutex<Stores>> = LazyLock::new(Mutex::default);

/// The store of a name and a namespace.
fn shared(name: &str, namespace: &Namespace) -> Arc<Mutex<State>> {
    lock(&STORES).entry((name.to_owned(), namespace.clone())).or_default().clone()
}

/// The namespaces of a name.
fn namespaces(name: &str) -> Vec<Namespace> {
    let named = |(stored, _): &&(String, Namespace)| stored == name;
    lock(&STORES).keys().filter(named).map(|(_, namespace)| namespace.clone()).collect()
}
