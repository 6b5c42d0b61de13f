//! A store with one defect at a time, and none if so wanted: the control of the suites.
//!
//! Like a server far away it carries out a commit a moment after its sender has read; what makes
//! that right is the comparison when it writes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use frazil_coord::{
    Act, Announcer, Change, Changes, Commit, Committed, Entry, Error, ErrorKind, Found, FreeSlots,
    Group, Guarantees, History, Look, Meta, Presence, PresenceChange, Present, Put, Record, Slot,
    Store, Strength, Token, UnixMs, Version, Versioned, Wanted, Watched,
};

use super::defect::Defect;

/// A client of the store.
#[derive(Clone)]
pub(crate) struct Naive {
    defect: Option<Defect>,
    client: u64,
    reachable: bool,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    clients: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    meta: Option<Versioned<Meta>>,
    /// Meta as it was last written, which a wipe does not reach: what a cache would show.
    cached_meta: Option<Versioned<Meta>>,
    cells: BTreeMap<Slot, Cell>,
    writes: u64,
    /// The latest time at which anybody wrote: the clock of a store that has none.
    clock: UnixMs,
    listeners: Vec<(Watched, Announcer)>,
}

#[derive(Clone, Default)]
struct Cell {
    version: Version,
    record: Option<Record>,
    present: bool,
    /// Who wrote last.
    client: u64,
}

impl Naive {
    pub(crate) fn new(defect: Option<Defect>) -> Self {
        Self { defect, client: 0, reachable: true, shared: Arc::default() }
    }

    /// Another client of the same store.
    pub(crate) fn client(&self) -> Self {
        let client = self.shared.clients.fetch_add(1, Ordering::Relaxed) + 1;
        Self { client, ..self.clone() }
    }

    /// A client that cannot reach the store.
    pub(crate) fn cut_off(&self) -> Self {
        Self { reachable: false, ..self.client() }
    }

    pub(crate) fn expire(&self, slot: &Slot) {
        if let Some(cell) = self.lock().cells.get_mut(slot) {
            cell.present = false;
        }
    }

    pub(crate) fn lose(&self, slot: &Slot) {
        if let Some(cell) = self.lock().cells.get_mut(slot) {
            (cell.record, cell.present) = (None, false);
        }
    }

    pub(crate) fn wipe(&self) {
        let mut state = self.lock();
        (state.meta, state.cells) = (None, BTreeMap::new());
    }

    fn is(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    fn reach(&self, act: Act) -> Result<MutexGuard<'_, State>, Error> {
        match self.reachable {
            true => Ok(self.lock()),
            false => Err(Error::new(ErrorKind::Unavailable, act.word(), self, "cut off")),
        }
    }

    fn entry(&self, state: &State, slot: &Slot) -> Entry {
        let Some(cell) = state.cells.get(slot) else { return Entry::unused(slot.clone()) };
        let presence = match cell.present && !self.is(Defect::IgnoresPresence) {
            true => Presence::Held { expires_in: None },
            false => Presence::Free,
        };
        let found = match cell.record.clone() {
            Some(record) => Found::Known(self.shown(state, cell, record)),
            None if self.is(Defect::TakesLostForNew) => Found::New,
            None => Found::Lost,
        };
        Entry { slot: slot.clone(), version: cell.version, found, presence }
    }

    /// The record as readers see it.
    fn shown(&self, state: &State, cell: &Cell, mut record: Record) -> Record {
        if self.is(Defect::FloorIsLastRenewal) {
            record.horizon = record.renewed;
        }
        if self.is(Defect::FloorIsNow) && !cell.present {
            record.horizon = record.horizon.min(state.clock);
        }
        record
    }

    fn look<'a>(&self, state: &State, slots: impl Iterator<Item = &'a Slot>) -> Look {
        let entries = slots.map(|slot| self.entry(state, slot)).collect();
        Look { meta: state.meta.clone(), entries, clock: None, history: History::default() }
    }

    /// The slot that a commit of several changes was served with before.
    fn served(&self, state: &State, commit: &Commit) -> Option<Slot> {
        let [Change { record: Record { nonce: Some(nonce), .. }, .. }, _, ..] = &commit.changes[..]
        else {
            return None;
        };
        let carries = |cell: &Cell| cell.record.as_ref().is_some_and(|r| r.nonce == Some(*nonce));
        let mut cells = state.cells.iter().filter(|_| !self.is(Defect::ForgetsClaims));
        cells.find(|(_, cell)| carries(cell)).map(|(slot, _)| slot.clone())
    }

    fn is_possible(&self, state: &State, act: Act, change: &Change) -> bool {
        let entry = self.entry(state, &change.slot);
        let same_version = entry.version == change.version;
        let same_nonce = entry.nonce() == change.nonce;
        let is_free = entry.presence == Presence::Free;
        let is_wrongly_possible = match (self.defect, act, &entry.found) {
            (Some(Defect::ExtendsAnyones), Act::Extend, Found::Known(_))
            | (Some(Defect::ReleasesAnyones), Act::Release, Found::Known(_))
            | (Some(Defect::ExtendsTheGone), Act::Extend, Found::Lost | Found::New)
            | (Some(Defect::WritesWithoutComparing), Act::Acquire, _) => true,
            (Some(Defect::TakesIfFree), Act::Acquire, _) => is_free,
            (Some(Defect::LateExtendLowers), Act::Extend, _) => same_nonce,
            (Some(Defect::ComparesVersionsAlone), _, _) => same_version && is_free,
            (Some(Defect::KnowsByClient), Act::Extend | Act::Release, Found::Known(record)) => {
                let writer = state.cells.get(&change.slot).map(|cell| cell.client);
                record.nonce.is_some() && writer == Some(self.client)
            }
            (Some(Defect::KnowsByName), Act::Extend | Act::Release, Found::Known(record)) => {
                record.holder == change.record.holder
            }
            _ => false,
        };
        let may_be_present = change.present == Present::Holder || is_free;
        is_wrongly_possible || (may_be_present && same_version && same_nonce)
    }

    /// Writes a change, as this store understands it.
    fn write(&self, state: &mut State, act: Act, change: &Change) -> Version {
        let mut record = change.record.clone();
        if self.is(Defect::RecordsThePast) && act == Act::Extend {
            record.horizon = record.renewed;
        }
        let version = state.next_version();
        state.clock = state.clock.max(record.renewed);
        let present = change.presence_change != PresenceChange::Ended;
        let cell = Cell { version, record: Some(record), present, client: self.client };
        state.cells.insert(change.slot.clone(), cell);
        state.announce(&change.slot);
        version
    }

    /// What is left and shown after a commit that none of its changes was made of.
    fn refuse(&self, state: &mut State, commit: &Commit) -> Look {
        for change in &commit.changes {
            if self.is(Defect::LeaksPresence) && commit.act == Act::Acquire {
                state.cells.entry(change.slot.clone()).or_default().present = true;
            }
            if let Some(cell) = state.cells.get_mut(&change.slot)
                && self.is(Defect::ReleasesOnFailedExtend)
                && commit.act == Act::Extend
            {
                cell.present = false;
            }
        }
        let mut look = self.look(state, commit.changes.iter().map(|change| &change.slot));
        if self.is(Defect::TakesAmnesiaForSuccession) {
            for (entry, change) in look.entries.iter_mut().zip(&commit.changes) {
                never_back(entry, &change.record);
            }
        }
        look
    }
}

/// Shows a record as if nothing that its client knew could have been forgotten.
fn never_back(entry: &mut Entry, known: &Record) {
    if let Found::Known(record) = &mut entry.found
        && record.nonce != known.nonce
    {
        record.token = record.token.max(Token(known.token.0 + 1));
        record.floor = record.floor.max(known.horizon);
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

    fn workers(&self) -> Vec<Slot> {
        self.cells.keys().filter(|slot| slot.group() == Group::Workers).cloned().collect()
    }
}

#[async_trait]
impl Store for Naive {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new("naive", Strength::Conditional)
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let state = self.reach(Act::Read)?;
        Ok(self.look(&state, slots.iter()))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let state = self.reach(Act::List)?;
        let slots = state.cells.keys().filter(|slot| slot.group() == group);
        Ok(self.look(&state, slots).entries)
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        if !self.reachable && self.is(Defect::OutageIsFull) {
            let look = Look { meta: self.lock().meta.clone(), ..Look::default() };
            let held = wanted.last - wanted.first + 1;
            return Ok(FreeSlots { look, is_complete: false, held });
        }
        let state = self.reach(Act::FreeSlots)?;
        let mut look = self.look(&state, state.workers().iter());
        if self.is(Defect::ForgetsClaims) {
            look.entries.retain(|entry| entry.nonce() != Some(wanted.nonce));
        }
        Ok(FreeSlots { look, is_complete: true, held: 0 })
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        // Others come in between what was read and what is written.
        tokio::task::yield_now().await;
        let mut state = self.reach(commit.act)?;
        if let Some(slot) = self.served(&state, commit) {
            return Ok(Committed::Conflict(self.look(&state, [&slot].into_iter())));
        }
        let is_meta = commit
            .meta
            .is_none_or(|read| state.meta.as_ref().map(|meta| meta.version) == Some(read));
        let possible = commit.changes.iter().enumerate();
        let mut possible: Vec<(usize, &Change)> = possible
            .filter(|(_, change)| is_meta && self.is_possible(&state, commit.act, change))
            .collect();
        if !self.is(Defect::WritesEveryChange) {
            possible.truncate(1);
        }
        let Some(&(index, change)) = possible.first() else {
            return Ok(Committed::Conflict(self.refuse(&mut state, commit)));
        };
        let version = self.write(&mut state, commit.act, change);
        for (_, change) in possible.drain(1..) {
            self.write(&mut state, commit.act, change);
        }
        let mut look = self.look(&state, std::iter::empty());
        if self.is(Defect::ExtendsTheGone) {
            look.meta.clone_from(&state.cached_meta);
        }
        Ok(Committed::Done { index, version, expires: None, look })
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let mut state = self.reach(Act::PutMeta)?;
        if state.meta.as_ref().map(|meta| meta.version) != expected {
            return Ok(Put::Conflict);
        }
        let version = state.next_version();
        state.meta = Some(Versioned { version, value: meta.clone() });
        state.cached_meta = state.meta.clone();
        Ok(Put::Done(version))
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        let mut state = self.reach(Act::Forget)?;
        let entry = self.entry(&state, slot);
        let is_held = entry.presence != Presence::Free && !self.is(Defect::ForgetsTheHeld);
        if slot.group() == Group::Workers || entry.version != version || is_held {
            return Ok(Put::Conflict);
        }
        state.cells.remove(slot);
        state.announce(slot);
        Ok(Put::Done(state.next_version()))
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        let (announcer, changes) = Changes::channel();
        self.reach(Act::Watch)?.listeners.push((watched.clone(), announcer));
        Ok(changes)
    }

    fn changes_max(&self) -> usize {
        8
    }
}

impl fmt::Display for Naive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("naive:")
    }
}

impl fmt::Debug for Naive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "naive: with {:?}", self.defect)
    }
}
