//! The Ids of one answer.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use frazil_id::Id;

use crate::clock;

/// Where the next one is when all are gone: beyond every length, with room to count on.
const ENDED: usize = usize::MAX / 2;

/// Ids in the order of an answer. Every place is given out by one atomic addition, so to one
/// caller alone.
#[derive(Debug)]
pub(super) struct Buffer {
    ids: Box<[Id]>,
    asked_ns: u64,
    /// Whoever gets this place fetches more.
    mark: usize,
    /// The tick at which the age was last looked at.
    seen: AtomicU64,
    was_called_old: AtomicBool,
    next: Place,
}

/// Alone in its lines of cache: it is written all the time, and what is beside it only read.
#[derive(Debug)]
#[repr(align(128))]
struct Place(AtomicUsize);

/// What a buffer has for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    Id {
        id: Id,
        is_low: bool,
    },
    /// All gone, or too old.
    Nothing,
}

/// How old a buffer is.
enum Age {
    Young,
    /// It will be too old soon, and this caller is the first to notice.
    SoonOld,
    Old,
}

impl Buffer {
    pub(super) fn new(ids: Vec<Id>, asked_ns: u64) -> Self {
        Self {
            mark: ids.len() / 2,
            ids: ids.into(),
            asked_ns,
            seen: AtomicU64::new(0),
            was_called_old: AtomicBool::new(false),
            next: Place(AtomicUsize::new(0)),
        }
    }

    #[inline]
    pub(super) fn serve(&self, max_age_ns: u64) -> Served {
        let is_soon_old = match self.age(max_age_ns) {
            Age::Young => false,
            Age::SoonOld => true,
            Age::Old => return Served::Nothing,
        };
        // Relaxed: the addition alone makes places unique; the Ids were written before the buffer
        // was published, and that is what orders them.
        let place = self.next.0.fetch_add(1, Ordering::Relaxed);
        match self.ids.get(place) {
            Some(id) => Served::Id { id: *id, is_low: place == self.mark || is_soon_old },
            None => Served::Nothing,
        }
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
        self.ids.len() as u64 - self.handed_out()
    }

    pub(super) fn handed_out(&self) -> u64 {
        self.next.0.load(Ordering::Relaxed).min(self.ids.len()) as u64
    }

    /// Gives nothing more. How many were handed out, and how many are left for ever.
    pub(super) fn end(&self) -> (u64, u64) {
        // Relaxed: as above; one exchange divides the places between before and after.
        let given = self.next.0.swap(ENDED, Ordering::Relaxed).min(self.ids.len());
        (given as u64, (self.ids.len() - given) as u64)
    }
}
