//! Some IDs of an answer that few threads take from, each ID for one caller alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frazil_fork::Birthmark;
use frazil_id::Id;

use crate::clock;

/// IDs that were claimed together. In lines of cache of its own: it is written with every ID, and by
/// as few threads as possible.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Chunk {
    /// The next place in the lower half, the end in the upper.
    places: AtomicU64,
    /// The tick at which the age was last looked at.
    seen: AtomicU64,
    ids: Box<[Id]>,
    mark: Arc<Birthmark>,
    age: Arc<AnswerAge>,
}

/// What a chunk has for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    Id {
        id: Id,
        is_soon_old: bool,
    },
    /// All are taken, or the rest was given up.
    Nothing,
    TooOld,
    /// It belongs to the process that this one was forked from.
    Inherited,
}

/// When an answer was asked for, and how long it is good.
#[derive(Debug)]
pub(super) struct AnswerAge {
    asked_ns: u64,
    max_age_ns: u64,
    was_called_old: AtomicBool,
}

/// How old an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    Young,
    /// It will be too old soon, and this caller is the first to notice.
    SoonOld,
    Old,
}

impl Chunk {
    pub(super) fn new(ids: &[Id], mark: Arc<Birthmark>, age: Arc<AnswerAge>) -> Self {
        Self {
            places: AtomicU64::new((ids.len() as u64) << 32),
            seen: AtomicU64::new(0),
            ids: ids.into(),
            mark,
            age,
        }
    }

    /// The next ID, without locks.
    #[inline]
    pub(super) fn take(&self) -> Served {
        let tick = clock::tick();
        let mut is_soon_old = false;
        // Within a tick nobody gets old. Relaxed: a stale value costs a reading of the clock.
        if self.seen.load(Ordering::Relaxed) != tick {
            match self.age.now() {
                Freshness::Young => {}
                Freshness::SoonOld => is_soon_old = true,
                Freshness::Old => return Served::TooOld,
            }
            self.seen.store(tick, Ordering::Relaxed);
        }
        // Relaxed: the addition alone makes places unique; the IDs were there before the chunk
        // was. Additions in vain are as few as threads: each then asks the pool for another chunk,
        // so the lower half never runs over.
        let (next, end) = halves(self.places.fetch_add(1, Ordering::Relaxed));
        let taken = if next < end { self.ids.get(next as usize) } else { None };
        // After the ID was taken: in a child that was forked before this moment it is the parent's,
        // who has the same one. A fork after this moment copies an ID that was handed out already,
        // which is the business of whoever forks.
        if !self.mark.is_here() {
            return Served::Inherited;
        }
        taken.map_or(Served::Nothing, |id| Served::Id { id: *id, is_soon_old })
    }

    pub(super) fn left(&self) -> u64 {
        left_of(self.places.load(Ordering::Relaxed))
    }

    /// Gives nothing more. How many are left for ever: one exchange divides the places between
    /// before and after.
    pub(super) fn end(&self) -> u64 {
        left_of(self.places.swap(0, Ordering::Relaxed))
    }
}

impl AnswerAge {
    pub(super) const fn new(asked_ns: u64, max_age_ns: u64) -> Self {
        Self { asked_ns, max_age_ns, was_called_old: AtomicBool::new(false) }
    }

    /// By the clock that counts suspension.
    #[cold]
    pub(super) fn now(&self) -> Freshness {
        let age_ns = clock::boot_ns().saturating_sub(self.asked_ns);
        if age_ns > self.max_age_ns {
            return Freshness::Old;
        }
        let is_soon_old = age_ns > self.max_age_ns - self.max_age_ns / 4;
        // Relaxed: who of several callers is the first does not matter.
        match is_soon_old && !self.was_called_old.swap(true, Ordering::Relaxed) {
            true => Freshness::SoonOld,
            false => Freshness::Young,
        }
    }
}

fn left_of(places: u64) -> u64 {
    let (next, end) = halves(places);
    u64::from(end.saturating_sub(next))
}

#[expect(clippy::cast_possible_truncation, reason = "a half is what is wanted")]
const fn halves(both: u64) -> (u32, u32) {
    (both as u32, (both >> 32) as u32)
}
