//! The store: cells, presence by its own clock, and a disk that may be behind.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use frazil_coord::internal::rules::UNSETTLED_MORE_MS;
use frazil_coord::{
    Act, Change, Changes, Commit, Committed, Entry, Error, ErrorKind, Found, FreeSlots, Group,
    Guarantees, History, Look, Meta, Nonce, Presence, PresenceChange, Present, Put, Record, Slot,
    Store, Strength, UnixMs, Version, Versioned, Wanted, Watched, Written,
};

use super::scope::{Keeps, Omitted, Scope};

/// The store at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreState {
    pub(crate) memory: Content,
    /// What is on disk, where that may be behind.
    pub(crate) disk: Content,
    /// Up to when all that was written is on disk.
    pub(crate) synced: UnixMs,
    /// Real time, and a little more for each write since it last went on: no two have one time.
    pub(crate) clock: UnixMs,
    /// How often it was started.
    pub(crate) run: u64,
}

/// What a store remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    pub(crate) meta: Option<MetaCell>,
    pub(crate) cells: BTreeMap<Slot, Cell>,
    writes: u64,
    /// The history that was begun last, when it began, and when one last did that may lack
    /// everything.
    begun: u64,
    since: UnixMs,
    forked: UnixMs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetaCell(pub(crate) Versioned<Meta>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    pub(crate) version: Version,
    pub(crate) record: Record,
    pub(crate) present_until: UnixMs,
}

impl Hash for MetaCell {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Versioned { version, value } = &self.0;
        (version, value.incarnation, value.quarantine, value.window_ms, value.created).hash(state);
    }
}

impl StoreState {
    /// A store with a namespace in which nobody has been yet.
    pub(crate) fn new(meta: Meta, now: UnixMs) -> Self {
        let meta = MetaCell(Versioned { version: Version(1), value: meta });
        let memory = Content { meta: Some(meta), writes: 1, ..Content::default() };
        Self { disk: memory.clone(), memory, synced: now, clock: now, run: 0 }
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.memory == self.disk
    }

    /// All that was written up to this time cannot be lost any more.
    fn settled(&self) -> UnixMs {
        if self.is_synced() { self.clock } else { self.synced }
    }

    /// All that was written so far cannot be lost any more.
    pub(crate) fn sync(&mut self) {
        self.disk.clone_from(&self.memory);
        self.synced = self.clock;
    }

    /// Restarts with what is on disk.
    pub(crate) fn lose(&mut self) {
        self.memory.clone_from(&self.disk);
        self.run += 1;
        self.synced = self.clock;
    }

    /// Forgets everything, also how often it was written.
    pub(crate) fn wipe(&mut self) {
        self.memory = Content { begun: self.run, ..Content::default() };
        self.disk.clone_from(&self.memory);
    }

    pub(crate) fn is_free(&self, cell: &Cell) -> bool {
        cell.present_until <= self.clock
    }

    /// Whether two holders are recorded in different histories of the slot.
    pub(crate) fn records_differ(&self) -> bool {
        let records = |content: &Content| -> Vec<Record> {
            content.cells.values().map(|cell| cell.record.clone()).collect()
        };
        records(&self.memory) != records(&self.disk)
    }
}

/// The store as the protocol sees it.
pub(crate) struct ModelStore {
    scope: Scope,
    state: Mutex<StoreState>,
}

impl ModelStore {
    /// Lets the protocol work on a store.
    pub(crate) fn run<T>(
        scope: &Scope,
        state: &mut StoreState,
        work: impl AsyncFnOnce(&Self) -> T,
    ) -> T {
        let store = Self { scope: *scope, state: Mutex::new(state.clone()) };
        let done = super::ready(work(&store));
        *state = store.lock().clone();
        done
    }

    fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().expect("nobody panics with it")
    }

    fn omits(&self, rule: Omitted) -> bool {
        self.scope.omitted == rule
    }

    /// Remembers that a history began, before anything is written in it.
    fn begin(&self, state: &mut StoreState) {
        if state.memory.meta.is_some() && state.memory.begun != state.run {
            let (since, forked) = self.beginning(state);
            let begun = state.run;
            state.memory = Content { begun, since, forked, ..std::mem::take(&mut state.memory) };
        }
    }

    /// When the history began, and when one last did that may lack everything.
    fn beginning(&self, state: &StoreState) -> (UnixMs, UnixMs) {
        let Content { since, forked, begun, .. } = state.memory;
        match self.scope.keeps {
            _ if begun == state.run => (since, forked),
            Keeps::Everything => (0, 0),
            Keeps::Settled => (since.max(state.clock), forked),
            Keeps::Nothing => (since, forked.max(state.clock)),
        }
    }

    fn history(&self, state: &StoreState, act: Act) -> History {
        if self.scope.keeps == Keeps::Everything {
            return History::default();
        }
        let (mut since, mut forked) = self.beginning(state);
        let mut id = state.run.to_string();
        if self.omits(Omitted::TimeOfTheRestart) {
            // Long ago.
            since = since.min(1);
        }
        if self.omits(Omitted::Histories) {
            (id, since) = ("one".to_owned(), 0);
        }
        if self.omits(Omitted::TimeOfTheFork) {
            forked = 0;
        }
        let is_hidden = self.omits(Omitted::CapOfExtensions) && act == Act::Extend
            || self.omits(Omitted::CapOfAcquisitions) && act == Act::Acquire;
        let settles = self.scope.keeps == Keeps::Settled;
        let settled = settles.then(|| state.settled());
        History { id, since, forked, settled, is_capped: settles && !is_hidden }
    }

    fn look(&self, state: &StoreState, act: Act, slots: &[Slot]) -> Look {
        let mut entries: Vec<Entry> = slots.iter().map(|slot| entry(state, slot)).collect();
        let history = self.history(state, act);
        if self.omits(Omitted::MoreThanTheRecordAfterARestart) && history.since > 0 {
            entries.iter_mut().for_each(lower);
        }
        let has_clock = self.scope.keeps != Keeps::Everything;
        let meta = state.memory.meta.as_ref().map(|meta| meta.0.clone());
        Look { meta, entries, clock: has_clock.then_some(state.clock), history }
    }

    fn write(&self, state: &mut StoreState, act: Act, change: &Change) -> (Version, UnixMs) {
        state.clock += 1;
        state.memory.writes += 1;
        let version = Version(state.memory.writes);
        let present_until = match change.presence_change {
            PresenceChange::For(ttl) => {
                state.clock + u64::try_from(ttl.as_millis()).expect("a short time")
            }
            PresenceChange::Ended => 0,
        };
        let mut record = change.record.clone();
        // For people to read only.
        record.renewed = if self.scope.keeps == Keeps::Everything { record.renewed } else { 0 };
        record.expires = Some(present_until).filter(|_| self.scope.keeps != Keeps::Everything);
        record.released |= act == Act::Put && self.omits(Omitted::OperatorsReleasesAreTakeovers);
        let cell = Cell { version, record, present_until };
        state.memory.cells.insert(change.slot.clone(), cell);
        (version, present_until)
    }

    fn fails(&self, act: Act, why: &str) -> Error {
        Error::new(ErrorKind::Unavailable, act.word(), self, why)
    }
}

/// What a record says is so much less that what is added after a restart makes up for it.
fn lower(entry: &mut Entry) {
    if let Found::Known(record) = &mut entry.found
        && !record.released
    {
        record.horizon = record.horizon.saturating_sub(UNSETTLED_MORE_MS);
    }
}

fn entry(state: &StoreState, slot: &Slot) -> Entry {
    let Some(cell) = state.memory.cells.get(slot) else { return Entry::unused(slot.clone()) };
    let presence = match state.is_free(cell) {
        true => Presence::Free,
        false => Presence::Held {
            expires_in: Some(Duration::from_millis(cell.present_until - state.clock)),
        },
    };
    let found = Found::Known(cell.record.clone());
    Entry { slot: slot.clone(), version: cell.version, found, presence }
}

fn is_possible(state: &StoreState, change: &Change) -> bool {
    let entry = entry(state, &change.slot);
    let may_be_present = change.present == Present::Holder || entry.presence == Presence::Free;
    may_be_present && entry.version == change.version && entry.nonce() == change.nonce
}

#[async_trait]
impl Store for ModelStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new("a model", Strength::Unconditional)
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let mut state = self.lock();
        if !slots.is_empty() {
            self.begin(&mut state);
        }
        Ok(self.look(&state, Act::Read, slots))
    }

    async fn list(&self, _: Group) -> Result<Vec<Entry>, Error> {
        let state = self.lock();
        let slots: Vec<Slot> = state.memory.cells.keys().cloned().collect();
        Ok(self.look(&state, Act::List, &slots).entries)
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        let mut state = self.lock();
        self.begin(&mut state);
        let all: Vec<Slot> = (wanted.first..=wanted.last).map(Slot::worker).collect();
        let look = self.look(&state, Act::FreeSlots, &all);
        Ok(FreeSlots { look, is_complete: true, held: 0 })
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        let mut state = self.lock();
        self.begin(&mut state);
        let slots: Vec<Slot> = commit.changes.iter().map(|change| change.slot.clone()).collect();
        let id = self.history(&state, commit.act).id;
        let is_unguarded = self.omits(Omitted::LapsedHoldersGiveUp) && commit.act == Act::Extend;
        let is_here = is_unguarded || commit.history.as_ref().is_none_or(|named| *named == id);
        let version = state.memory.meta.as_ref().map(|meta| meta.0.version);
        let is_meta = commit.meta.is_none_or(|named| version == Some(named));
        let index = commit.changes.iter().position(|change| is_possible(&state, change));
        let Some(index) = index.filter(|_| is_here && is_meta) else {
            return Ok(Committed::Conflict(self.look(&state, commit.act, &slots)));
        };
        let (version, expires) = self.write(&mut state, commit.act, &commit.changes[index]);
        let look = self.look(&state, commit.act, &[]);
        let expires = Some(expires).filter(|_| look.clock.is_some());
        Ok(Committed::Done { index, version, expires, look })
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let mut state = self.lock();
        if state.memory.meta.as_ref().map(|meta| meta.0.version) != expected {
            return Ok(Put::Conflict);
        }
        self.begin(&mut state);
        state.memory.begun = state.run;
        state.clock += 1;
        state.memory.writes += 1;
        let version = Version(state.memory.writes);
        let mut value = meta.clone();
        if self.omits(Omitted::Incarnations) {
            value.incarnation = Nonce::from_bits(0);
        }
        state.memory.meta = Some(MetaCell(Versioned { version, value }));
        Ok(Put::Done(version))
    }

    async fn settle(&self, written: &Written) -> Result<bool, Error> {
        let state = self.lock();
        if self.omits(Omitted::SettledTakeovers) {
            return Ok(true);
        }
        match self.scope.keeps {
            Keeps::Nothing => Ok(false),
            _ if written.history != self.history(&state, Act::Settle).id => Ok(false),
            _ if written.clock <= state.settled() => Ok(true),
            _ => Err(self.fails(Act::Settle, "it has not settled yet")),
        }
    }

    async fn forget(&self, _: &Slot, _: Version) -> Result<Put, Error> {
        Ok(Put::Conflict)
    }

    async fn watch(&self, _: &Watched) -> Result<Changes, Error> {
        Ok(Changes::channel().1)
    }
}

impl fmt::Display for ModelStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("model:")
    }
}

impl fmt::Debug for ModelStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
