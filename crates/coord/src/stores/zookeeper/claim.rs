//! Acquiring: one slot as it was read, or any of a pool.

use std::collections::{HashMap, HashSet};

use zookeeper_client::Stat;

use super::cell::{Cell, look, version_of, version_of_stat};
use super::failure::Failure;
use super::paths::{worker_of, worker_of_mark};
use super::session::{Deadline, Get, Got, Node};
use super::write::{ANY, Change, Changed, Stay, Writer};
use crate::choose::{Candidate, candidates, shuffle};
use crate::lease::{Acquired, Census, Claim, Tenure};
use crate::record::{Record, UnixMs, Version};
use crate::rules::{self, Outlook};
use crate::slot::{Group, Slot};
use crate::store::{Entry, Found, Presence};

/// How many slots are tried on one listing: others take from the same list, so soon it is cheaper
/// to list again than to guess.
const TRIES: usize = 2;
/// How many slots are read before all free ones are: enough to find one whose floor has passed,
/// unless the pool is nearly exhausted.
const SAMPLE: usize = 8;

/// One claim on its way.
pub(super) struct Acquisition<'a> {
    pub(super) writer: Writer<'a>,
    pub(super) claim: &'a Claim,
    pub(super) deadline: Deadline,
}

/// The workers from which any will do.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) favourite: Option<u32>,
}

/// A pool as its listings show it.
struct Pool {
    /// How often meta was written.
    meta: i32,
    range: Range,
    held: HashSet<u32>,
    used: HashSet<u32>,
    /// Some slots that were read with the listings.
    seen: Vec<Cell>,
}

impl Acquisition<'_> {
    /// Takes the slot if it is free and still what was read.
    pub(super) async fn this(&self, slot: &Slot, read: Version) -> Result<Acquired, Failure> {
        let mut sent = false;
        loop {
            let slots = std::slice::from_ref(slot);
            let looked =
                look(self.writer.session, self.writer.paths, slots, true, self.deadline).await;
            let (meta, cell) = match looked {
                Ok((meta, mut cells)) => (meta, cells.pop()),
                // What was sent before may have been carried out.
                Err(_) if sent => return Ok(Acquired::Unsure(slot.clone(), read)),
                Err(failure) => return Err(failure),
            };
            let Some(cell) = cell else { return Ok(Acquired::Taken) };
            let attempt = match self.judge(&cell, meta.as_ref(), read) {
                Verdict::Write(attempt) => attempt,
                Verdict::Answer(acquired) => return Ok(acquired),
            };
            match self.attempt(&cell, &attempt).await {
                Ok(Changed::Done(stat)) => {
                    return Ok(Acquired::Held(self.tenure(slot, &stat, &attempt.record)));
                }
                Ok(Changed::Conflict) => {}
                Err(Failure::Silent(_)) => sent = true,
                Err(_) if sent => return Ok(Acquired::Unsure(slot.clone(), read)),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Takes any free worker of the range.
    pub(super) async fn any(&self, range: Range) -> Result<Acquired, Failure> {
        // A server that lags behind can cost an attempt, but must not turn anybody away.
        let mut fresh = false;
        loop {
            match self.round(range, fresh).await? {
                None => {}
                Some(Acquired::Full(_) | Acquired::MetaMoved) if !fresh => fresh = true,
                Some(acquired) => return Ok(acquired),
            }
        }
    }

    /// Lists the pool and tries some of it. `None`: others were faster each time.
    async fn round(&self, range: Range, fresh: bool) -> Result<Option<Acquired>, Failure> {
        let Some(pool) = self.list(range, fresh).await? else {
            return Ok(Some(Acquired::MetaMoved));
        };
        let loved =
            |cell: &&Cell| range.favourite.is_some() && cell.slot.number() == range.favourite;
        if let Some(favourite) = pool.seen.iter().find(loved)
            && !favourite.is_held()
            && rules::outlook(&favourite.found(), self.claim) == Outlook::Passed
            && let Some(acquired) = self.take(favourite, pool.meta).await?
        {
            return Ok(Some(acquired));
        }
        let unused = pool.unused(self.claim);
        if !unused.is_empty() && rules::acquire(&Found::New, self.claim).is_ok() {
            let cells = unused.into_iter().map(|number| Cell::new(Slot::worker(number)));
            return self.take_first(cells.take(TRIES), &pool).await;
        }
        self.reuse(&pool).await
    }

    /// Takes one that was used before: of those that were read with the listing, else of a sample
    /// of the free ones, else the best of all.
    async fn reuse(&self, pool: &Pool) -> Result<Option<Acquired>, Failure> {
        let seen = self.ideal(&pool.seen);
        if !seen.is_empty() {
            return self.take_first(seen.into_iter().take(TRIES), pool).await;
        }
        let free = pool.free(self.claim);
        if free.len() > SAMPLE {
            let sample = self.ideal(&self.look_at(&free[..SAMPLE]).await?);
            if !sample.is_empty() {
                return self.take_first(sample.into_iter().take(TRIES), pool).await;
            }
        }
        let (best, census) = self.rank(pool, &self.look_at(&free).await?);
        if best.is_empty() {
            return Ok(Some(Acquired::Full(census)));
        }
        self.take_first(best.into_iter().take(TRIES), pool).await
    }

    /// Of some slots those than which no other can suit better, the longest unused first.
    fn ideal(&self, cells: &[Cell]) -> Vec<Cell> {
        let Claim { now, quarantine, nonce, .. } = self.claim;
        let ranked = cells.iter().filter(|cell| !cell.is_held()).filter_map(|cell| {
            let found = cell.found();
            let floor = rules::floor_of(&found, self.claim);
            let suits = rules::acquire(&found, self.claim).is_ok() && floor <= *now.max(quarantine);
            let rank = (floor, shuffle(nonce.bits(), cell.slot.number()?));
            suits.then_some((rank, cell))
        });
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, cell)| cell.clone()).collect()
    }

    /// Of all free slots those that can be taken, in the order to try them, and a count of the
    /// others of the pool.
    fn rank(&self, pool: &Pool, cells: &[Cell]) -> (Vec<Cell>, Census) {
        let mut entries: Vec<_> = cells.iter().cloned().map(Cell::into_entry).collect();
        let read: HashMap<_, _> =
            cells.iter().filter_map(|cell| Some((cell.slot.number()?, cell))).collect();
        // All free ones were read.
        let held = pool.numbers().filter(|number| !read.contains_key(number));
        entries.extend(held.map(|number| Entry {
            slot: Slot::worker(number),
            version: Version(0),
            found: Found::New,
            presence: Presence::Held { expires_in: None },
        }));
        let Range { first, last, favourite } = pool.range;
        let (ranked, census) = candidates(entries, first, last, favourite, self.claim);
        let cell = |candidate: Candidate| read.get(&candidate.slot.number()?).copied().cloned();
        (ranked.into_iter().filter_map(cell).collect(), census)
    }

    async fn look_at(&self, numbers: &[u32]) -> Result<Vec<Cell>, Failure> {
        let slots: Vec<_> = numbers.iter().map(|number| Slot::worker(*number)).collect();
        let Writer { session, paths, .. } = self.writer;
        Ok(look(session, paths, &slots, false, self.deadline).await?.1)
    }

    /// Which slots of the pool are held and which were used; `None` if meta has moved.
    async fn list(&self, range: Range, fresh: bool) -> Result<Option<Pool>, Failure> {
        let Writer { session, paths, .. } = self.writer;
        let mut gets = vec![
            Get::Data(paths.meta()),
            Get::Children(paths.owners()),
            Get::Children(paths.group(Group::Workers)),
            Get::Children(paths.births()),
        ];
        let guesses = range.guesses(self.claim);
        gets.extend(guesses.iter().flat_map(|slot| Cell::gets(paths, slot)));
        let mut got = session.read(&gets, fresh, self.deadline).await?.into_iter();
        let meta = match got.next() {
            Some(Got::Data(Some(meta))) if version_of(&meta) == self.claim.meta => meta,
            _ => return Ok(None),
        };
        let mut names = || match got.next() {
            Some(Got::Children(names)) => names,
            Some(Got::Data(_)) | None => Vec::new(),
        };
        let (owners, records, births) = (names(), names(), names());
        let named = |name: &String| worker_of(name);
        let marked = |mark: &String| worker_of_mark(mark);
        let mut used: HashSet<_> = births.iter().filter_map(marked).collect();
        used.extend(records.iter().filter_map(named));
        let held = owners.iter().filter_map(marked).collect();
        let seen = guesses.into_iter().map(|slot| Cell::from_got(slot, &mut got)).collect();
        Ok(Some(Pool { meta: meta.stat.version, range, held, used, seen }))
    }

    /// Takes the first that nobody else was faster to take.
    async fn take_first(
        &self,
        cells: impl Iterator<Item = Cell>,
        pool: &Pool,
    ) -> Result<Option<Acquired>, Failure> {
        for cell in cells {
            if let Some(acquired) = self.take(&cell, pool.meta).await? {
                return Ok(Some(acquired));
            }
        }
        Ok(None)
    }

    /// Takes a slot that seemed free. `None`: somebody was faster.
    async fn take(&self, cell: &Cell, meta: i32) -> Result<Option<Acquired>, Failure> {
        let Ok(record) = rules::acquire(&cell.found(), self.claim) else { return Ok(None) };
        let attempt = Attempt { record, meta };
        match self.attempt(cell, &attempt).await {
            Ok(Changed::Done(stat)) => {
                let tenure = self.tenure(&cell.slot, &stat, &attempt.record);
                Ok(Some(Acquired::Held(tenure)))
            }
            Ok(Changed::Conflict) => Ok(None),
            // To walk on before this is settled would leak the slot.
            Err(Failure::Silent(_)) => match self.settle(cell).await {
                Acquired::Taken => Ok(None),
                settled => Ok(Some(settled)),
            },
            Err(failure) => Err(failure),
        }
    }

    /// Finds out how an attempt without an answer ended, or makes it again.
    async fn settle(&self, cell: &Cell) -> Acquired {
        let (slot, version) = (&cell.slot, cell.version());
        let again = Box::pin(self.this(slot, version)).await;
        again.unwrap_or_else(|_| Acquired::Unsure(slot.clone(), version))
    }

    /// What to write to get a slot, or why there is nothing to write.
    fn judge(&self, cell: &Cell, meta: Option<&Node>, read: Version) -> Verdict {
        let Some(meta) = meta else { return Verdict::Answer(Acquired::MetaMoved) };
        // A repetition comes before all other questions: they were answered when it was new, and
        // meta may have moved since.
        if let Some(record) = cell.known()
            && record.nonce == Some(self.claim.nonce)
        {
            return Verdict::Write(Attempt { record, meta: ANY });
        }
        if version_of(meta) != self.claim.meta {
            return Verdict::Answer(Acquired::MetaMoved);
        }
        if cell.version() != read || cell.is_held() {
            return Verdict::Answer(Acquired::Taken);
        }
        match rules::acquire(&cell.found(), self.claim) {
            Ok(record) => Verdict::Write(Attempt { record, meta: meta.stat.version }),
            Err(outlook) => Verdict::Answer(Acquired::Full(Census::of(outlook))),
        }
    }

    async fn attempt(&self, cell: &Cell, attempt: &Attempt) -> Result<Changed, Failure> {
        let presence = Stay::Present(self.claim.nonce);
        let meta = Some(attempt.meta);
        let change = Change { cell, record: &attempt.record, meta, presence };
        self.writer.change(&change, self.deadline).await
    }

    fn tenure(&self, slot: &Slot, stat: &Stat, record: &Record) -> Tenure {
        let version = version_of_stat(stat);
        let tenure = rules::tenure(self.claim, slot.clone(), version, record);
        acknowledged(tenure, stat, &self.writer)
    }
}

enum Verdict {
    Write(Attempt),
    Answer(Acquired),
}

/// What is to be written to get a slot.
struct Attempt {
    record: Record,
    meta: i32,
}

impl Range {
    /// The favourite, and some that the claim's nonce picks.
    fn guesses(&self, claim: &Claim) -> Vec<Slot> {
        let numbers = self.first..=self.last;
        let favourite = self.favourite.filter(|number| numbers.contains(number));
        let mut others: Vec<_> = numbers.filter(|number| favourite != Some(*number)).collect();
        others.sort_by_cached_key(|number| shuffle(claim.nonce.bits(), *number));
        favourite.into_iter().chain(others.into_iter().take(SAMPLE)).map(Slot::worker).collect()
    }
}

impl Pool {
    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.range.first..=self.range.last
    }

    /// Never used, in an order that the claim's nonce gives.
    fn unused(&self, claim: &Claim) -> Vec<u32> {
        self.shuffled(claim, |number| !self.used.contains(&number))
    }

    /// Free, the favourite first, the others in an order that the claim's nonce gives.
    fn free(&self, claim: &Claim) -> Vec<u32> {
        let mut free = self.shuffled(claim, |_| true);
        free.sort_by_key(|number| self.range.favourite != Some(*number));
        free
    }

    fn shuffled(&self, claim: &Claim, wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let is_wanted = |number: &u32| !self.held.contains(number) && wanted(*number);
        let mut numbers: Vec<_> = self.numbers().filter(is_wanted).collect();
        numbers.sort_by_cached_key(|number| shuffle(claim.nonce.bits(), *number));
        numbers
    }
}

/// A tenure with what the store's clock said: the time of the write, and that presence lasts for
/// at least a session from then.
pub(super) fn acknowledged(tenure: Tenure, stat: &Stat, writer: &Writer<'_>) -> Tenure {
    let now: Option<UnixMs> = u64::try_from(stat.mtime).ok();
    let lasts = u64::try_from(writer.session.lasts().as_millis()).unwrap_or(u64::MAX);
    let expires = now.map(|now| now.saturating_add(lasts));
    Tenure { store_now: now, expires, ..tenure }
}
