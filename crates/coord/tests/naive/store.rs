//! A store with one defect at a time, and none if so wanted: the control of the suites.
//!
//! Like a client of a real store it reads, works out what to write and writes, in that order and
//! not at once; what makes that right is the comparison when it writes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use frazil_coord::choose::candidates;
use frazil_coord::{
    Acquired, Announcer, Ask, Census, Changes, Choice, Claim, Entry, Error, ErrorKind, Extended,
    Found, Group, Guarantees, Loss, Meta, Presence, Put, Record, Released, Slot, Store, Strength,
    Tenure, UnixMs, Version, Versioned, rules,
};

use crate::defect::Defect;

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
    cells: BTreeMap<Slot, Cell>,
    /// Every record that was ever written, by its version: what a slow client once read.
    history: BTreeMap<Version, Record>,
    writes: u64,
    listeners: Vec<Announcer>,
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

    fn reach(&self, act: &'static str) -> Result<MutexGuard<'_, State>, Error> {
        match self.reachable {
            true => Ok(self.lock()),
            false => Err(Error::new(ErrorKind::Unavailable, act, self, "cut off")),
        }
    }

    fn entry(&self, slot: &Slot, cell: Option<&Cell>) -> Entry {
        let unused = Cell::default();
        let exists = cell.is_some() && !self.is(Defect::TakesLostForNew);
        let cell = cell.unwrap_or(&unused);
        let found = match &cell.record {
            Some(record) => Found::Known(record.clone()),
            None if exists => Found::Lost,
            None => Found::New,
        };
        let presence = match cell.present && !self.is(Defect::IgnoresPresence) {
            true => Presence::Held { expires_in: None },
            false => Presence::Free,
        };
        Entry { slot: slot.clone(), version: cell.version, found, presence }
    }

    /// The record that the claim leads to, given what was found.
    fn work_out(&self, found: &Found, claim: &Claim) -> Result<Record, rules::Outlook> {
        let mut seen = found.clone();
        if let Found::Known(record) = &mut seen {
            if self.is(Defect::FloorIsLastRenewal) {
                record.horizon = record.renewed;
            }
            if self.is(Defect::FloorIsNow) {
                record.horizon = claim.now;
            }
        }
        rules::acquire(&seen, claim)
    }

    /// The tenure that a repeated claim has got already.
    fn served(&self, state: &State, claim: &Claim) -> Option<Tenure> {
        state.cells.keys().find_map(|slot| {
            let entry = self.entry(slot, state.cells.get(slot));
            let Found::Known(record) = &entry.found else { return None };
            let ours = record.nonce == Some(claim.nonce) && !self.is(Defect::ForgetsClaims);
            ours.then(|| rules::tenure(claim, entry.slot.clone(), entry.version, record))
        })
    }

    fn take(&self, state: &mut State, slot: &Slot, read: Version, claim: &Claim) -> Acquired {
        let entry = self.entry(slot, state.cells.get(slot));
        if let Found::Known(record) = &entry.found
            && self.is(Defect::KnowsByName)
            && record.holder == claim.holder
        {
            return Acquired::Held(rules::tenure(claim, entry.slot, entry.version, record));
        }
        let outdated = entry.version != read;
        let held = entry.presence != Presence::Free;
        let refused = match self.defect {
            Some(Defect::TakesIfFree) => held,
            // Free when it was read, and nobody looks again.
            Some(Defect::WritesWithoutComparing) => held && !outdated,
            _ => held || outdated,
        };
        if refused {
            return Acquired::Taken;
        }
        // What the caller read, which the comparison has shown to be what is there.
        let found = match state.history.get(&read) {
            Some(record) if outdated => Found::Known(record.clone()),
            None if outdated => Found::New,
            _ => entry.found,
        };
        match self.work_out(&found, claim) {
            Ok(record) => {
                let version = state.write(slot, &record, true, self.client);
                Acquired::Held(rules::tenure(claim, entry.slot, version, &record))
            }
            Err(outlook) => {
                if self.is(Defect::LeaksPresence) {
                    state.cells.entry(slot.clone()).or_default().present = true;
                }
                let mut census = Census::default();
                census.count(outlook);
                Acquired::Full(census)
            }
        }
    }

    /// Whether the tenure is the record's, as this store sees it.
    fn disguise(&self, cell: &Cell, record: &Record, tenure: &Tenure, any: Defect) -> Tenure {
        let known = self.is(any) || (self.is(Defect::KnowsByClient) && cell.client == self.client);
        match (known, record.nonce) {
            (true, Some(nonce)) => Tenure { nonce, token: record.token, ..tenure.clone() },
            _ => tenure.clone(),
        }
    }
}

impl State {
    fn write(&mut self, slot: &Slot, record: &Record, present: bool, client: u64) -> Version {
        self.writes += 1;
        let version = Version(self.writes);
        self.history.insert(version, record.clone());
        let cell = Cell { version, record: Some(record.clone()), present, client };
        self.cells.insert(slot.clone(), cell);
        self.listeners.retain(Announcer::announce);
        version
    }
}

#[async_trait]
impl Store for Naive {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            store: "naive".into(),
            uniqueness: Strength::Conditional,
            because: "none".into(),
            leadership: "none".into(),
            token: "none".into(),
            voided_by: Vec::new(),
            warnings: Vec::new(),
        }
    }

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        Ok(self.reach("meta")?.meta.clone())
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let mut state = self.reach("put meta")?;
        if state.meta.as_ref().map(|meta| meta.version) != expected {
            return Ok(Put::Conflict);
        }
        state.writes += 1;
        let version = Version(state.writes);
        state.meta = Some(Versioned { version, value: meta.clone() });
        Ok(Put::Done(version))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let state = self.reach("list")?;
        let ours = state.cells.iter().filter(|(slot, _)| slot.group() == group);
        Ok(ours.map(|(slot, cell)| self.entry(slot, Some(cell))).collect())
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        if !self.reachable && self.is(Defect::OutageIsFull) {
            return Ok(Acquired::Full(Census::default()));
        }
        // Every turn of the loop reads and then, a moment later, writes.
        loop {
            let choice = match &claim.choice {
                Choice::This(slot, read) => Some((slot.clone(), *read)),
                Choice::Any { first, last, favourite } => {
                    let entries = self.list(Group::Workers).await?;
                    let (best, census) = candidates(entries, *first, *last, *favourite, claim);
                    match best.into_iter().next() {
                        Some(best) => Some((best.slot, best.version)),
                        None => return Ok(Acquired::Full(census)),
                    }
                }
            };
            tokio::task::yield_now().await;
            let mut state = self.reach("acquire")?;
            if let Some(tenure) = self.served(&state, claim) {
                return Ok(Acquired::Held(tenure));
            }
            if state.meta.as_ref().map(|meta| meta.version) != Some(claim.meta) {
                return Ok(Acquired::MetaMoved);
            }
            let Some((slot, read)) = choice else { return Ok(Acquired::Taken) };
            match (self.take(&mut state, &slot, read, claim), &claim.choice) {
                (Acquired::Taken, Choice::Any { .. }) => {}
                (acquired, _) => return Ok(acquired),
            }
        }
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        let mut state = self.reach("extend")?;
        let known = state.cells.get(&tenure.slot).cloned();
        let cell = known.filter(|_| state.meta.is_some()).unwrap_or_default();
        let Some(record) = &cell.record else {
            if !self.is(Defect::ExtendsTheGone) {
                return Ok(Extended::Lost(Loss::Vanished));
            }
            let record = brought_back(tenure, ask);
            let version = state.write(&tenure.slot, &record, true, self.client);
            let horizon = record.horizon;
            return Ok(Extended::Held(Tenure { version, horizon, ..tenure.clone() }));
        };
        let tenure = self.disguise(&cell, record, tenure, Defect::ExtendsAnyones);
        Ok(match rules::extend(record, &tenure, ask) {
            Ok(mut record) => {
                if self.is(Defect::LateExtendLowers) {
                    record.horizon = ask.horizon;
                }
                let horizon = record.horizon;
                if self.is(Defect::RecordsThePast) {
                    record.horizon = ask.now;
                }
                let version = state.write(&tenure.slot, &record, true, self.client);
                Extended::Held(Tenure { version, horizon, ..tenure })
            }
            Err(loss) => {
                if self.is(Defect::ReleasesOnFailedExtend) {
                    state.write(&tenure.slot, record, false, self.client);
                }
                let holder = record.holder.clone();
                Extended::Lost(match self.is(Defect::TakesAmnesiaForSuccession) {
                    true => Loss::Superseded { token: record.token, holder },
                    false => loss,
                })
            }
        })
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        let mut state = self.reach("release")?;
        let cell = state.cells.get(&tenure.slot).cloned().unwrap_or_default();
        let Some(record) = &cell.record else { return Ok(Released::NotHeld) };
        let tenure = self.disguise(&cell, record, tenure, Defect::ReleasesAnyones);
        match rules::release(record, &tenure, last) {
            Ok(record) => {
                state.write(&tenure.slot, &record, false, self.client);
                Ok(Released::Done)
            }
            Err(_) => Ok(Released::NotHeld),
        }
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        let mut state = self.reach("put")?;
        let entry = self.entry(slot, state.cells.get(slot));
        if entry.version != expected || entry.presence != Presence::Free {
            return Ok(Put::Conflict);
        }
        Ok(Put::Done(state.write(slot, record, false, self.client)))
    }

    async fn watch(&self, _: Group) -> Result<Changes, Error> {
        let (announcer, changes) = Changes::channel();
        self.reach("watch")?.listeners.push(announcer);
        Ok(changes)
    }
}

fn brought_back(tenure: &Tenure, ask: &Ask) -> Record {
    Record {
        token: tenure.token,
        nonce: Some(tenure.nonce),
        holder: "somebody".into(),
        floor: tenure.floor,
        horizon: ask.horizon,
        renewed: ask.now,
        expires: None,
        info: BTreeMap::new(),
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
