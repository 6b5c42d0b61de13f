//! The search for free workers, without reading all of them.

use std::collections::HashSet;

use super::cell::{Cell, Snapshot};
use super::paths::{worker_of, worker_of_mark};
use super::session::{Deadline, Get};
use super::tree::Tree;
use crate::choose::shuffle;
use crate::error::Failure;
use crate::record::UnixMs;
use crate::slot::{Group, Slot};
use crate::store::{FreeSlots, Wanted};

/// How many workers are read before all free ones are: enough to find one whose horizon has passed,
/// unless the pool is nearly exhausted.
const SAMPLE: usize = 8;

/// The workers of a range as their listings show them.
struct Pool<'a> {
    wanted: &'a Wanted,
    held: HashSet<u32>,
    used: HashSet<u32>,
    /// Meta, and some workers that were read with the listings.
    seen: Snapshot,
}

impl Tree {
    /// A worker that was never used, if there is one; else some whose horizon has passed; else all
    /// that are free.
    ///
    /// A worker that carries the wanted nonce is noticed among those that are read, and not looked
    /// for: a commit here has one change, so a claim of unknown outcome asks for its slot by name.
    pub(super) async fn free_slots(
        &self,
        wanted: &Wanted,
        deadline: Deadline,
    ) -> Result<FreeSlots, Failure> {
        self.keep_clock(deadline).await?;
        let mut pool = self.pool(wanted, false, deadline).await?;
        if let Some(number) = pool.free(|number| !pool.used.contains(&number)).first() {
            pool.seen.cells.push(Cell::new(Slot::worker(*number)));
            return self.found(pool);
        }
        if pool.seen.has_passed(wanted.now) {
            return self.found(pool);
        }
        let free = pool.free(|_| true);
        if free.len() > SAMPLE {
            pool.see(self.workers(&free[..SAMPLE], deadline).await?);
            if pool.seen.has_passed(wanted.now) {
                return self.found(pool);
            }
        }
        // A server that lags behind can cost an attempt, but must not turn anybody away.
        let mut pool = self.pool(wanted, true, deadline).await?;
        pool.see(self.workers(&pool.free(|_| true), deadline).await?);
        self.found(pool)
    }

    fn found(&self, pool: Pool<'_>) -> Result<FreeSlots, Failure> {
        let look = self.look(&pool.seen)?;
        let mut held = pool.held;
        let present = pool.seen.cells.iter().filter(|cell| cell.own.is_some());
        held.extend(present.filter_map(|cell| cell.slot.number()));
        held.retain(|number| (pool.wanted.first..=pool.wanted.last).contains(number));
        self.remember(pool.seen);
        let held = u32::try_from(held.len()).unwrap_or(u32::MAX);
        Ok(FreeSlots { look, is_complete: false, held })
    }

    async fn workers(&self, numbers: &[u32], deadline: Deadline) -> Result<Snapshot, Failure> {
        let slots: Vec<_> = numbers.iter().map(|number| Slot::worker(*number)).collect();
        self.snapshot(&slots, false, deadline).await
    }

    /// Which workers are held and which were used, with the favourite and some that the wanted
    /// nonce picks.
    async fn pool<'a>(
        &self,
        wanted: &'a Wanted,
        fresh: bool,
        deadline: Deadline,
    ) -> Result<Pool<'a>, Failure> {
        let mut gets = vec![
            Get::Children(self.paths.owners()),
            Get::Children(self.paths.group(Group::Workers)),
            Get::Children(self.paths.use_marks()),
        ];
        let slots = guesses(wanted);
        gets.extend(Snapshot::gets(&self.paths, &slots));
        let mut read = self.session.read(&gets, fresh, deadline).await?;
        let (owners, records, marks) = (read.names(), read.names(), read.names());
        let mut used: HashSet<_> = marks.iter().filter_map(|mark| worker_of_mark(mark)).collect();
        used.extend(records.iter().filter_map(|name| worker_of(name)));
        let held = owners.iter().filter_map(|mark| worker_of_mark(mark)).collect();
        Ok(Pool { wanted, held, used, seen: Snapshot::from_read(&slots, read) })
    }
}

/// The favourite, and some that the wanted nonce picks.
fn guesses(wanted: &Wanted) -> Vec<Slot> {
    let numbers = wanted.first..=wanted.last;
    let favourite = wanted.favourite.filter(|number| numbers.contains(number));
    let others = shuffled(wanted, |number| favourite != Some(number));
    favourite.into_iter().chain(others.into_iter().take(SAMPLE)).map(Slot::worker).collect()
}

/// Those of the range that fit, in an order that the wanted nonce gives.
fn shuffled(wanted: &Wanted, fits: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut numbers: Vec<_> = (wanted.first..=wanted.last).filter(|number| fits(*number)).collect();
    numbers.sort_by_cached_key(|number| shuffle(wanted.nonce.bits(), *number));
    numbers
}

impl Pool<'_> {
    /// The free ones that fit.
    fn free(&self, fits: impl Fn(u32) -> bool) -> Vec<u32> {
        shuffled(self.wanted, |number| !self.held.contains(&number) && fits(number))
    }

    fn see(&mut self, more: Snapshot) {
        self.seen.cells.retain(|cell| more.cells.iter().all(|newer| newer.slot != cell.slot));
        self.seen.cells.extend(more.cells);
    }
}

impl Snapshot {
    /// Whether it has a free worker whose horizon has passed: none can be better.
    fn has_passed(&self, now: UnixMs) -> bool {
        self.cells.iter().any(|cell| cell.own.is_none() && cell.found().has_passed(now))
    }
}
