//! The Ids of one answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frazil_id::Id;

use super::lanes::Lanes;
use crate::clock;

/// Ids in the order of an answer, each for one caller alone.
#[derive(Debug)]
pub(super) struct Buffer {
    ids: Box<[Id]>,
    asked_ns: u64,
    /// The tick at which the age was last looked at.
    seen: AtomicU64,
    was_called_old: AtomicBool,
    places: Lanes,
}

/// What a buffer has for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    Id {
        id: Id,
        is_low: bool,
    },
    /// This thread has taken all that it claimed.
    Nothing,
    TooOld,
}

/// How old a buffer is.
enum Age {
    Young,
    /// It will be too old soon, and this caller is the first to notice.
    SoonOld,
    Old,
}

impl Buffer {
    /// For so many threads at once.
    pub(super) fn new(ids: Vec<Id>, asked_ns: u64, threads: usize) -> Self {
        Self {
            places: Lanes::new(ids.len(), threads),
            ids: ids.into(),
            asked_ns,
            seen: AtomicU64::new(0),
            was_called_old: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(super) fn serve(&self, max_age_ns: u64) -> Served {
        let is_soon_old = match self.age(max_age_ns) {
            Age::Young => false,
            Age::SoonOld => true,
            Age::Old => return Served::TooOld,
        };
        // The Ids were written before the buffer was published, and that is what orders them.
        let place = self.places.take();
        match place.and_then(|place| Some((place, self.ids.get(place as usize)?))) {
            Some((place, id)) => {
                Served::Id { id: *id, is_low: self.places.is_mark(place) || is_soon_old }
            }
            None => Served::Nothing,
        }
    }

    /// Gets this thread more of what nobody has claimed. `false`: there is nothing. To be called
    /// under the pool's lock.
    pub(super) fn claim(&self) -> bool {
        self.places.claim()
    }

    /// The clock that counts suspension is read once a tick; within a tick nobody gets old.
    #[inline]
    fn age(&self, max_age_ns: u64) -> Age {
        let tick = clock::tick();
        // Relaxed: a stale value costs a reading of the clock, no more.
        if self.seen.load(Ordering::Relaxed) == tick {
            return Age::Young;
        }
        self.exact_age(max_age_ns, tick)
    }

    #[cold]
    fn exact_age(&self, max_age_ns: u64, tick: u64) -> Age {
        let age_ns = clock::boot_ns().saturating_sub(self.asked_ns);
        if age_ns > max_age_ns {
            return Age::Old;
        }
        self.seen.store(tick, Ordering::Relaxed);
        let is_soon_old = age_ns > max_age_ns - max_age_ns / 4;
        // Relaxed: who of several callers is the first does not matter.
        match is_soon_old && !self.was_called_old.swap(true, Ordering::Relaxed) {
            true => Age::SoonOld,
            false => Age::Young,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left() == 0
    }

    pub(super) fn left(&self) -> u64 {
        self.places.left()
    }

    pub(super) fn handed_out(&self) -> u64 {
        self.places.taken()
    }

    /// Gives nothing more. How many were handed out, and how many are left for ever. To be called
    /// under the pool's lock.
    pub(super) fn end(&self) -> (u64, u64) {
        self.places.end()
    }
}
