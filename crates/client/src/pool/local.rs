//! The chunks that this thread takes from: one for each client that it uses.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::chunk::{Chunk, Served};

/// Clients that a thread can use in turn without losing its place: hardly any uses more. What is
/// pushed out here is found again in the pool.
const SLOTS: usize = 4;

type Slots = [Option<Held>; SLOTS];

#[derive(Debug)]
struct Held {
    pool: PoolNumber,
    chunk: Arc<Chunk>,
}

/// Which pool a chunk is of. No two clients of a process have the same; a client keeps its own when
/// the process forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolNumber(u64);

thread_local! {
    static HELD: RefCell<Slots> = const { RefCell::new([const { None }; SLOTS]) };
}

impl PoolNumber {
    pub(crate) fn unused() -> Self {
        static POOLS: AtomicU64 = AtomicU64::new(0);
        // Relaxed, here and below: the addition alone makes numbers unique.
        Self(POOLS.fetch_add(1, Ordering::Relaxed))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the last bits are wanted")]
    const fn slot(self) -> usize {
        self.0 as usize % SLOTS
    }
}

/// The next ID of the chunk that this thread has of a pool.
#[inline]
pub(super) fn take(pool: PoolNumber) -> Served {
    let taken = HELD.try_with(|held| match &held.borrow()[pool.slot()] {
        Some(held) if held.pool == pool => held.chunk.take(),
        _ => Served::Nothing,
    });
    // A thread that is ending has none.
    taken.unwrap_or(Served::Nothing)
}

/// Takes from this chunk from now on.
pub(super) fn hold(pool: PoolNumber, chunk: Arc<Chunk>) {
    let held = Some(Held { pool, chunk });
    // What was there is dropped after the borrow has ended.
    let _before =
        HELD.try_with(|slots| std::mem::replace(&mut slots.borrow_mut()[pool.slot()], held));
}

/// Threads are numbered as they come.
pub(super) fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    // A thread that is ending shares with the first.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}
