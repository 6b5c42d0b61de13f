//! Which place of a buffer is whose: each is given to one caller alone, and threads do not get into
//! each other's way.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The most places that a lane has at a time: enough to make a claim cheap, and few enough that
/// what idle threads leave is little.
const STRETCH: u32 = 256;

/// The places from 0 to a length. A thread takes those of its lane, which claims a stretch of them
/// at a time, so that threads of different lanes write to nothing in common. With a single lane
/// places come in order whoever asks; with more, in order for each thread.
#[derive(Debug)]
pub(super) struct Lanes {
    /// As many as a power of two.
    lanes: Box<[Lane]>,
    len: u32,
    stretch: u32,
    /// In the middle. No stretch goes across it, so whoever claims beyond it is given it.
    mark: u32,
    /// The first place that no lane has. Written by one thread at a time.
    unclaimed: Apart<AtomicU32>,
}

/// What a lane has left: the next place in the lower half, the end of its stretch in the upper.
#[derive(Debug, Default)]
struct Lane(Apart<AtomicU64>);

/// Alone in its lines of cache: it is written, and what is beside it only read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);

impl Lanes {
    /// Lanes for so many threads at once.
    pub(super) fn new(len: usize, threads: usize) -> Self {
        let count = threads.clamp(1, 64).next_power_of_two();
        let share = u32::try_from(len / (4 * count)).unwrap_or(STRETCH);
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Self {
            lanes: (0..count).map(|_| Lane::default()).collect(),
            len,
            stretch: if count == 1 { len } else { share.clamp(1, STRETCH) },
            mark: len / 2,
            unclaimed: Apart(AtomicU32::new(0)),
        }
    }

    /// The next place of this thread's stretch.
    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        // Relaxed, here and below: the addition alone makes places unique, and nothing else is
        // published by it. Those in vain are as few as threads: each then makes a claim, which
        // begins anew, so the lower half never runs over.
        let (next, end) = halves(self.mine().0.0.fetch_add(1, Ordering::Relaxed));
        (next < end).then_some(next)
    }

    /// Whether this is the place at which more is to be fetched.
    #[inline]
    pub(super) const fn is_mark(&self, place: u32) -> bool {
        place == self.mark
    }

    /// Gives this thread's lane its next stretch, after the last is used up. `false`: all are
    /// claimed. To be called by one thread at a time.
    pub(super) fn claim(&self) -> bool {
        let first = self.unclaimed.0.load(Ordering::Relaxed);
        let limit = if first < self.mark { self.mark } else { self.len };
        let end = first.saturating_add(self.stretch).min(limit);
        self.unclaimed.0.store(end, Ordering::Relaxed);
        self.mine().0.0.store(u64::from(end) << 32 | u64::from(first), Ordering::Relaxed);
        first < end
    }

    /// How many can still be taken.
    pub(super) fn left(&self) -> u64 {
        let claimed: u64 = self.lanes.iter().map(Lane::left).sum();
        u64::from(self.len - self.unclaimed.0.load(Ordering::Relaxed)) + claimed
    }

    pub(super) fn taken(&self) -> u64 {
        u64::from(self.len).saturating_sub(self.left())
    }

    /// Gives nothing more. How many were taken, and how many are left for ever. To be called by one
    /// thread at a time.
    pub(super) fn end(&self) -> (u64, u64) {
        let unclaimed = self.len - self.unclaimed.0.swap(self.len, Ordering::Relaxed);
        // One exchange divides the places of a lane between before and after.
        let claimed: u64 = self.lanes.iter().map(Lane::end).sum();
        let left = u64::from(unclaimed) + claimed;
        (u64::from(self.len) - left, left)
    }

    #[inline]
    fn mine(&self) -> &Lane {
        &self.lanes[number_of_thread() & (self.lanes.len() - 1)]
    }
}

impl Lane {
    fn left(&self) -> u64 {
        let (next, end) = halves(self.0.0.load(Ordering::Relaxed));
        u64::from(end.saturating_sub(next))
    }

    fn end(&self) -> u64 {
        let (next, end) = halves(self.0.0.swap(0, Ordering::Relaxed));
        u64::from(end.saturating_sub(next))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a half is what is wanted")]
const fn halves(both: u64) -> (u32, u32) {
    (both as u32, (both >> 32) as u32)
}

/// Threads are numbered as they come.
#[inline]
fn number_of_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    // A thread that is ending shares the first lane.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lanes: &Lanes) -> Vec<u32> {
        let next = || lanes.take().or_else(|| if lanes.claim() { lanes.take() } else { None });
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn one_thread_gets_every_place_in_order_however_many_lanes_there_are() {
        for threads in [0, 1, 2, 3, 8, 1000] {
            for len in [0, 1, 2, 3, 15, 16, 1000, 10_007] {
                let lanes = Lanes::new(len as usize, threads);
                assert_eq!(lanes.left(), u64::from(len));
                assert_eq!(all(&lanes), (0..len).collect::<Vec<_>>(), "{threads} {len}");
                assert_eq!((lanes.left(), lanes.taken()), (0, u64::from(len)));
                assert_eq!((lanes.take(), lanes.claim(), lanes.take()), (None, false, None));
            }
        }
    }

    #[test]
    fn threads_take_from_stretches_of_their_own() {
        let lanes = Lanes::new(10_000, 64);
        assert!(lanes.take().is_none() && lanes.claim());
        let mine = lanes.take().unwrap();
        let theirs = std::thread::scope(|scope| {
            scope.spawn(|| lanes.claim().then(|| lanes.take())).join().unwrap().flatten().unwrap()
        });
        assert_eq!((mine, theirs), (0, lanes.stretch));
        assert_eq!(lanes.take(), Some(1));
        assert_eq!((lanes.taken(), lanes.left()), (3, 9_997));
    }

    #[test]
    fn what_is_ended_gives_nothing_more_and_counts_what_lanes_had_left() {
        let lanes = Lanes::new(1_000, 2);
        lanes.claim();
        let taken = std::iter::from_fn(|| lanes.take()).take(5).count();
        assert_eq!((taken, lanes.end()), (5, (5, 995)));
        assert_eq!((lanes.take(), lanes.claim(), lanes.take()), (None, false, None));
        assert_eq!(lanes.left(), 0);
    }

    #[test]
    fn whoever_claims_beyond_the_middle_is_given_the_mark() {
        for threads in [1, 2, 8] {
            let lanes = Lanes::new(1_000, threads);
            let marks: Vec<_> = all(&lanes).into_iter().filter(|p| lanes.is_mark(*p)).collect();
            assert_eq!(marks, [500]);
        }
        // A thread that stops in the middle of its stretch does not keep it from the others.
        let lanes = Lanes::new(1_000, 64);
        while lanes.unclaimed.0.load(Ordering::Relaxed) < 500 {
            assert!(lanes.claim());
        }
        assert!(lanes.claim());
        assert!(lanes.is_mark(lanes.take().unwrap()));
    }
}
