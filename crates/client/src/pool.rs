//! IDs that were fetched ahead: one buffer that is handed out, and one that follows it.

mod buffer;
mod chunk;
mod local;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frazil_fork::Birthmark;
use frazil_id::Id;

use self::buffer::{Buffer, TakeOutcome};
use self::chunk::{AnswerAge, Served};

pub(crate) use self::local::PoolNumber;

/// What fetched IDs wait in. A thread takes them from a chunk of its own, and comes here for
/// another one when that is used up.
#[derive(Debug)]
pub(crate) struct Pool {
    number: PoolNumber,
    buffers: Mutex<Buffers>,
    mark: Arc<Birthmark>,
    max_age_ns: u64,
    threads: usize,
    /// Dropped, and not told to anybody yet.
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Buffers {
    current: Option<Buffer>,
    spare: Option<Buffer>,
    /// From those that are gone.
    handed_out: u64,
}

/// An ID, and whether it is time to fetch more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) id: Id,
    pub(crate) is_low: bool,
}

impl Pool {
    /// Of the process that has the mark, for so many threads at once. With one, IDs of a buffer come
    /// in order whoever takes them; with more, in order for each thread.
    pub(crate) fn new(
        number: PoolNumber,
        mark: Arc<Birthmark>,
        max_age_ns: u64,
        threads: usize,
    ) -> Self {
        Self {
            number,
            buffers: Mutex::default(),
            mark,
            max_age_ns,
            threads,
            dropped: AtomicU64::new(0),
        }
    }

    /// The next ID when this thread's chunk has none: of another chunk, of the current buffer or
    /// of the spare one, which is then put in its place.
    #[cold]
    pub(crate) fn turn_over(&self) -> Option<Taken> {
        let mut buffers = self.buffers();
        loop {
            if let Some(current) = &mut buffers.current {
                match current.serve(local::thread_number()) {
                    TakeOutcome::Taken(taken, chunk) => {
                        drop(buffers);
                        local::hold(self.number, chunk);
                        return Some(taken);
                    }
                    // What others have claimed is theirs while there is nothing to follow it.
                    TakeOutcome::Nothing if current.left() > 0 && buffers.spare.is_none() => {
                        return None;
                    }
                    TakeOutcome::Nothing | TakeOutcome::TooOld => {}
                }
            }
            let following = buffers.spare.take();
            let is_last = following.is_none();
            self.replace_current(&mut buffers, following);
            if is_last {
                return None;
            }
        }
    }

    /// Adds IDs that were asked for at a time: each is handed out once, or dropped.
    pub(crate) fn put(&self, ids: Vec<Id>, asked_ns: u64) {
        if ids.is_empty() {
            return;
        }
        let age = AnswerAge::new(asked_ns, self.max_age_ns);
        let buffer = Buffer::new(ids, age, &self.mark, self.threads);
        let mut buffers = self.buffers();
        let is_served = buffers.current.as_ref().is_some_and(|buffer| buffer.left() > 0);
        if !is_served && buffers.spare.is_none() {
            self.replace_current(&mut buffers, Some(buffer));
        } else if let Some(older) = buffers.spare.replace(buffer) {
            self.discard(older.left());
        }
    }

    /// Drops all that is there.
    pub(crate) fn clear(&self) {
        let mut buffers = self.buffers();
        self.replace_current(&mut buffers, None);
        if let Some(spare) = buffers.spare.take() {
            self.discard(spare.left());
        }
    }

    /// How many were handed out from here.
    pub(crate) fn handed_out(&self) -> u64 {
        let buffers = self.buffers();
        buffers.handed_out + buffers.current.as_ref().map_or(0, Buffer::handed_out)
    }

    /// Notes IDs that were dropped before they came here.
    pub(crate) fn discard(&self, count: u64) {
        // Relaxed, here and below: a counter with which nothing else is ordered.
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Takes note of those that were dropped because of their age, or because nobody wanted them.
    pub(crate) fn take_dropped(&self) -> u64 {
        // Looked at first: it is hardly ever there, and whoever writes disturbs the others.
        match self.dropped.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.dropped.swap(0, Ordering::Relaxed),
        }
    }

    /// How many are there, young and old.
    pub(crate) fn len(&self) -> u64 {
        let buffers = self.buffers();
        [&buffers.current, &buffers.spare].into_iter().flatten().map(Buffer::left).sum()
    }

    /// Whether another buffer follows the one that is handed out.
    pub(crate) fn has_spare(&self) -> bool {
        self.buffers().spare.is_some()
    }

    fn replace_current(&self, buffers: &mut Buffers, following: Option<Buffer>) {
        if let Some(buffer) = std::mem::replace(&mut buffers.current, following) {
            let (handed_out, left) = buffer.end();
            buffers.handed_out += handed_out;
            self.discard(left);
        }
    }

    fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next ID that this thread has claimed of a pool, unless it is too old or another process's.
/// Without locks.
#[inline]
pub(crate) fn take(pool: PoolNumber) -> Option<Taken> {
    match local::take(pool) {
        Served::Id { id, is_soon_old } => Some(Taken { id, is_low: is_soon_old }),
        Served::Nothing | Served::TooOld | Served::Inherited => None,
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

    fn new_pool(max_age_ns: u64, threads: usize) -> Pool {
        Pool::new(PoolNumber::unused(), Arc::new(Birthmark::new()), max_age_ns, threads)
    }

    fn dropped(pool: &Pool) -> u64 {
        let dropped = pool.take_dropped();
        pool.discard(dropped);
        dropped
    }

    fn any(pool: &Pool) -> Option<Taken> {
        take(pool.number).or_else(|| pool.turn_over())
    }

    fn drain(pool: &Pool) -> Vec<u64> {
        std::iter::from_fn(|| any(pool)).map(|taken| taken.id.to_u64()).collect()
    }

    #[test]
    fn buffers_follow_each_other_and_every_id_comes_once() {
        let pool = new_pool(FOR_EVER, 2);
        pool.put(ids(0..10), asked_now());
        pool.put(ids(10..20), asked_now());
        assert_eq!(pool.len(), 20);
        assert_eq!(drain(&pool), (0..20).collect::<Vec<_>>());
        assert_eq!((pool.handed_out(), dropped(&pool), pool.len()), (20, 0, 0));
        assert_eq!(any(&pool), None);
    }

    #[test]
    fn exactly_one_taker_hears_that_the_buffer_is_low() {
        let pool = new_pool(FOR_EVER, 2);
        pool.put(ids(0..100), asked_now());
        let low = (0..100).filter(|_| any(&pool).unwrap().is_low).count();
        assert_eq!(low, 1);
    }

    #[test]
    fn what_is_too_old_is_dropped_and_counted() {
        let pool = new_pool(1_000_000_000, 2);
        let long_ago = asked_now().saturating_sub(2_000_000_000);
        pool.put(ids(0..5), long_ago);
        pool.put(ids(5..9), asked_now());
        assert_eq!(drain(&pool), (5..9).collect::<Vec<_>>());
        assert_eq!((pool.handed_out(), dropped(&pool)), (4, 5));
        // The control: without a limit the old ones come out.
        let pool = new_pool(FOR_EVER, 2);
        pool.put(ids(0..5), long_ago);
        assert_eq!(drain(&pool).len(), 5);
    }

    #[test]
    fn a_third_buffer_replaces_the_second_and_clearing_drops_all() {
        let pool = new_pool(FOR_EVER, 2);
        for start in [0, 10, 20] {
            pool.put(ids(start..start + 10), asked_now());
        }
        assert_eq!((pool.len(), dropped(&pool)), (20, 10));
        any(&pool).unwrap();
        pool.clear();
        assert_eq!((pool.handed_out(), dropped(&pool), any(&pool)), (1, 29, None));
    }

    #[test]
    fn a_thread_that_has_nothing_left_takes_nothing_from_the_others() {
        let pool = new_pool(FOR_EVER, 64);
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
        assert_eq!((dropped(&pool), pool.len()), (1, 0));
    }

    #[test]
    fn threads_that_take_in_turn_share_one_order_only_where_it_is_asked_for() {
        let in_turn = |threads| {
            let pool = new_pool(FOR_EVER, threads);
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
        let pool = new_pool(FOR_EVER, 2);
        let mut all = Vec::new();
        std::thread::scope(|scope| {
            let pool = &pool;
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(move || {
                        let mut mine = Vec::new();
                        while pool.handed_out() + dropped(pool) < BUFFERS * 100 {
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
        assert_eq!(distinct.len(), all.len(), "an ID was handed out twice");
        assert_eq!(all.len() as u64, pool.handed_out());
        assert_eq!(pool.handed_out() + dropped(&pool), BUFFERS * 100);
    }
}
