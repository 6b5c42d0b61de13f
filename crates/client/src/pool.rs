//! Ids that were fetched ahead: one buffer that is handed out, and one that follows it.

mod buffer;
mod lanes;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use frazil_id::Id;

use self::buffer::{Buffer, Served};
use self::lanes::Apart;

/// What fetched Ids wait in.
#[derive(Debug)]
pub(crate) struct Pool {
    current: ArcSwapOption<Buffer>,
    /// What comes after it. Whoever holds the lock may change which buffer is current.
    spare: Apart<Mutex<Option<Buffer>>>,
    max_age_ns: u64,
    threads: usize,
    handed_out: AtomicU64,
    discarded: AtomicU64,
}

/// An Id, and whether it is time to fetch more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) id: Id,
    pub(crate) is_low: bool,
}

impl Pool {
    /// For so many threads at once. With one, Ids of a buffer come in order whoever takes them; with
    /// more, in order for each thread.
    pub(crate) const fn new(max_age_ns: u64, threads: usize) -> Self {
        Self {
            current: ArcSwapOption::const_empty(),
            spare: Apart(Mutex::new(None)),
            max_age_ns,
            threads,
            handed_out: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
        }
    }

    /// The next Id that this thread has claimed of the current buffer, unless it is too old. Without
    /// locks.
    #[inline]
    pub(crate) fn take(&self) -> Option<Taken> {
        match self.current.load().as_ref()?.serve(self.max_age_ns) {
            Served::Id { id, is_low } => Some(Taken { id, is_low }),
            Served::Nothing | Served::TooOld => None,
        }
    }

    /// The same when there is none: claims more, or puts the spare buffer in the current one's place.
    #[cold]
    pub(crate) fn turn_over(&self) -> Option<Taken> {
        let mut spare = self.spare();
        loop {
            if let Some(current) = self.current.load().as_ref() {
                match current.serve(self.max_age_ns) {
                    // Somebody else may have been here first.
                    Served::Id { id, is_low } => return Some(Taken { id, is_low }),
                    Served::Nothing if current.claim() => continue,
                    // What others have claimed is theirs while there is nothing to follow it.
                    Served::Nothing if spare.is_none() && !current.is_empty() => return None,
                    Served::Nothing | Served::TooOld => {}
                }
            }
            let following = spare.take();
            let is_last = following.is_none();
            self.retire(self.current.swap(following.map(Arc::new)));
            if is_last {
                return None;
            }
        }
    }

    /// Adds Ids that were asked for at a time: each is handed out once, or dropped.
    pub(crate) fn put(&self, ids: Vec<Id>, asked_ns: u64) {
        if ids.is_empty() {
            return;
        }
        let buffer = Buffer::new(ids, asked_ns, self.threads);
        let mut spare = self.spare();
        let is_served = self.current.load().as_ref().is_some_and(|buffer| !buffer.is_empty());
        if !is_served && spare.is_none() {
            self.retire(self.current.swap(Some(Arc::new(buffer))));
        } else if let Some(older) = spare.replace(buffer) {
            self.count(&older);
        }
    }

    /// Drops all that is there.
    pub(crate) fn clear(&self) {
        let mut spare = self.spare();
        self.retire(self.current.swap(None));
        if let Some(spare) = spare.take() {
            self.count(&spare);
        }
    }

    /// How many were handed out from here.
    pub(crate) fn handed_out(&self) -> u64 {
        // Whoever retires a buffer holds the lock, so none is counted twice or not at all.
        let _held = self.spare();
        let current = self.current.load().as_ref().map_or(0, |buffer| buffer.handed_out());
        self.handed_out.load(Ordering::Relaxed) + current
    }

    /// How many were dropped because of their age, or because nobody wanted them.
    pub(crate) fn discarded(&self) -> u64 {
        self.discarded.load(Ordering::Relaxed)
    }

    /// Notes Ids that were dropped before they came here.
    pub(crate) fn discard(&self, count: u64) {
        // Relaxed: a counter, read by statistics alone.
        self.discarded.fetch_add(count, Ordering::Relaxed);
    }

    /// How many are there, young and old.
    pub(crate) fn len(&self) -> u64 {
        let spare = self.spare();
        let current = self.current.load().as_ref().map_or(0, |buffer| buffer.left());
        current + spare.as_ref().map_or(0, Buffer::left)
    }

    /// Whether another buffer follows the one that is handed out.
    pub(crate) fn has_spare(&self) -> bool {
        self.spare().is_some()
    }

    fn retire(&self, buffer: Option<Arc<Buffer>>) {
        if let Some(buffer) = buffer {
            self.count(&buffer);
        }
    }

    /// Ends a buffer, also for those that still look at it.
    fn count(&self, buffer: &Buffer) {
        let (given, left) = buffer.end();
        // Relaxed: counters, read by statistics alone.
        self.handed_out.fetch_add(given, Ordering::Relaxed);
        self.discard(left);
    }

    fn spare(&self) -> MutexGuard<'_, Option<Buffer>> {
        self.spare.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const FOR_EVER: u64 = u64::MAX;

    fn asked_now() -> u64 {
        crate::clock::boot_ns()
    }

    fn ids(range: std::ops::Range<u64>) -> Vec<Id> {
        range.map(Id::from_u64).collect()
    }

    fn any(pool: &Pool) -> Option<Taken> {
        pool.take().or_else(|| pool.turn_over())
    }

    fn drain(pool: &Pool) -> Vec<u64> {
        std::iter::from_fn(|| any(pool)).map(|taken| taken.id.to_u64()).collect()
    }

    #[test]
    fn buffers_follow_each_other_and_every_id_comes_once() {
        let pool = Pool::new(FOR_EVER, 2);
        pool.put(ids(0..10), asked_now());
        pool.put(ids(10..20), asked_now());
        assert_eq!(pool.len(), 20);
        assert_eq!(drain(&pool), (0..20).collect::<Vec<_>>());
        assert_eq!((pool.handed_out(), pool.discarded(), pool.len()), (20, 0, 0));
        assert_eq!(any(&pool), None);
    }

    #[test]
    fn exactly_one_taker_hears_that_the_buffer_is_low() {
        let pool = Pool::new(FOR_EVER, 2);
        pool.put(ids(0..100), asked_now());
        let low = (0..100).filter(|_| any(&pool).unwrap().is_low).count();
        assert_eq!(low, 1);
    }

    #[test]
    fn what_is_too_old_is_dropped_and_counted() {
        let pool = Pool::new(1_000_000_000, 2);
        let long_ago = asked_now().saturating_sub(2_000_000_000);
        pool.put(ids(0..5), long_ago);
        pool.put(ids(5..9), asked_now());
        assert_eq!(drain(&pool), (5..9).collect::<Vec<_>>());
        assert_eq!((pool.handed_out(), pool.discarded()), (4, 5));
        // The control: without a limit the old ones come out.
        let pool = Pool::new(FOR_EVER, 2);
        pool.put(ids(0..5), long_ago);
        assert_eq!(drain(&pool).len(), 5);
    }

    #[test]
    fn a_third_buffer_replaces_the_second_and_clearing_drops_all() {
        let pool = Pool::new(FOR_EVER, 2);
        for start in [0, 10, 20] {
            pool.put(ids(start..start + 10), asked_now());
        }
        assert_eq!((pool.len(), pool.discarded()), (20, 10));
        any(&pool).unwrap();
        pool.clear();
        assert_eq!((pool.handed_out(), pool.discarded(), any(&pool)), (1, 29, None));
    }

    #[test]
    fn a_thread_that_has_nothing_left_takes_nothing_from_the_others() {
        let pool = Pool::new(FOR_EVER, 64);
        pool.put(ids(0..1000), asked_now());
        let first = any(&pool).unwrap().id;
        std::thread::scope(|scope| {
            let other = || std::iter::from_fn(|| any(&pool)).count();
            assert_eq!(scope.spawn(other).join().unwrap(), 997);
        });
        assert_eq!(pool.len(), 2);
        assert_eq!(any(&pool).unwrap().id.to_u64(), first.to_u64() + 1);
        // What comes later is for all, and what is left then is dropped.
        pool.put(ids(2000..2004), asked_now());
        let other = |_| std::thread::scope(|scope| scope.spawn(|| any(&pool)).join().unwrap());
        assert_eq!((0..4).filter_map(other).count(), 4);
        assert_eq!((pool.discarded(), pool.len()), (1, 0));
    }

    #[test]
    fn threads_that_take_in_turn_share_one_order_only_where_it_is_asked_for() {
        let in_turn = |threads| {
            let pool = Pool::new(FOR_EVER, threads);
            pool.put(ids(0..1000), asked_now());
            let mut all = Vec::new();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    all.push(any(&pool).unwrap().id);
                    all.push(scope.spawn(|| any(&pool).unwrap().id).join().unwrap());
                }
            });
            all.is_sorted()
        };
        assert!(in_turn(1));
        assert!(!in_turn(64));
    }

    #[test]
    fn threads_that_take_while_others_put_get_every_id_once() {
        const BUFFERS: u64 = 2000;
        let pool = Pool::new(FOR_EVER, 2);
        let mut all = Vec::new();
        std::thread::scope(|scope| {
            let pool = &pool;
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(move || {
                        let mut mine = Vec::new();
                        while pool.handed_out() + pool.discarded() < BUFFERS * 100 {
                            mine.extend(any(pool).map(|taken| taken.id));
                        }
                        mine
                    })
                })
                .collect();
            for buffer in 0..BUFFERS {
                pool.put(ids(buffer * 100..(buffer + 1) * 100), asked_now());
            }
            all.extend(takers.into_iter().map(|taker| taker.join().unwrap()));
        });
        assert!(all.iter().all(|mine: &Vec<Id>| mine.is_sorted()), "a thread went back");
        let all: Vec<Id> = all.into_iter().flatten().collect();
        let distinct: BTreeSet<Id> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len(), "an Id was handed out twice");
        assert_eq!(all.len() as u64, pool.handed_out());
        assert_eq!(pool.handed_out() + pool.discarded(), BUFFERS * 100);
    }
}
