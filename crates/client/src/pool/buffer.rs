//! The IDs of one answer, and which of them is whose.

use std::sync::Arc;

use frazil_fork::Birthmark;
use frazil_id::Id;

use super::Taken;
use super::chunk::{AnswerAge, Chunk, Freshness, Served};

/// The most IDs of a chunk: enough to make a claim cheap, and few enough that what idle threads
/// leave is little.
const CHUNK_MAX: usize = 1024;

/// IDs in the order of an answer. Threads take them from chunks, one for each shard, so that
/// threads of different shards write to nothing in common. With a single shard they come in order
/// whoever takes them; with more, in order for each thread.
#[derive(Debug)]
pub(super) struct Buffer {
    ids: Box<[Id]>,
    /// The first ID that is in no chunk.
    unclaimed: usize,
    chunk: usize,
    /// What each shard takes from; as many as a power of two.
    shards: Box<[Option<Arc<Chunk>>]>,
    mark: Arc<Birthmark>,
    age: Arc<AnswerAge>,
}

/// What a buffer has for a thread.
#[derive(Debug)]
pub(super) enum TakeOutcome {
    /// An ID, and the chunk that it was taken from.
    Taken(Taken, Arc<Chunk>),
    /// This thread's shard has taken all that it claimed, and nothing is left to be claimed.
    Nothing,
    TooOld,
}

impl Buffer {
    /// For so many threads at once.
    pub(super) fn new(ids: Vec<Id>, age: AnswerAge, mark: &Arc<Birthmark>, threads: usize) -> Self {
        let shards = threads.clamp(1, 64).next_power_of_two();
        let share = if shards == 1 { CHUNK_MAX } else { ids.len() / (4 * shards) };
        Self {
            ids: ids.into(),
            unclaimed: 0,
            chunk: share.clamp(1, CHUNK_MAX),
            shards: vec![None; shards].into(),
            mark: mark.clone(),
            age: Arc::new(age),
        }
    }

    /// The next ID for a thread, by its number: of its shard's chunk, or of a new one.
    pub(super) fn serve(&mut self, thread: usize) -> TakeOutcome {
        let mut is_low = false;
        match self.age.now() {
            Freshness::Old => return TakeOutcome::TooOld,
            Freshness::SoonOld => is_low = true,
            Freshness::Young => {}
        }
        loop {
            let shard = thread & (self.shards.len() - 1);
            if let Some(chunk) = &self.shards[shard] {
                match chunk.take() {
                    Served::Id { id, is_soon_old } => {
                        let taken = Taken { id, is_low: is_low || is_soon_old };
                        return TakeOutcome::Taken(taken, chunk.clone());
                    }
                    Served::TooOld => return TakeOutcome::TooOld,
                    Served::Nothing | Served::Inherited => {}
                }
            }
            match self.claim(shard) {
                Some(reached_middle) => is_low |= reached_middle,
                None => return TakeOutcome::Nothing,
            }
        }
    }

    /// Gives a shard its next chunk, after the last is used up; says whether it begins in the
    /// middle of the buffer. No chunk goes across the middle, so exactly one does.
    fn claim(&mut self, shard: usize) -> Option<bool> {
        let (first, middle) = (self.unclaimed, self.ids.len() / 2);
        let limit = if first < middle { middle } else { self.ids.len() };
        let end = (first + self.chunk).min(limit);
        if first == end {
            return None;
        }
        self.unclaimed = end;
        let chunk = Chunk::new(&self.ids[first..end], self.mark.clone(), self.age.clone());
        self.shards[shard] = Some(Arc::new(chunk));
        Some(first == middle)
    }

    /// How many can still be taken.
    pub(super) fn left(&self) -> u64 {
        let claimed: u64 = self.chunks().map(Chunk::left).sum();
        (self.ids.len() - self.unclaimed) as u64 + claimed
    }

    pub(super) fn handed_out(&self) -> u64 {
        self.ids.len() as u64 - self.left()
    }

    /// Gives nothing more. How many were handed out, and how many are left for ever.
    pub(super) fn end(self) -> (u64, u64) {
        let claimed: u64 = self.chunks().map(Chunk::end).sum();
        let left = (self.ids.len() - self.unclaimed) as u64 + claimed;
        (self.ids.len() as u64 - left, left)
    }

    fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.shards.iter().flatten().map(|chunk| &**chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(len: u64, threads: usize) -> Buffer {
        let ids = (0..len).map(Id::from_u64).collect();
        let age = AnswerAge::new(crate::clock::boot_ns(), u64::MAX);
        Buffer::new(ids, age, &Arc::new(Birthmark::new()), threads)
    }

    fn next(buffer: &mut Buffer, thread: usize) -> Option<Taken> {
        match buffer.serve(thread) {
            TakeOutcome::Taken(taken, _) => Some(taken),
            TakeOutcome::Nothing | TakeOutcome::TooOld => None,
        }
    }

    fn all(buffer: &mut Buffer) -> Vec<Taken> {
        std::iter::from_fn(|| next(buffer, 5)).collect()
    }

    #[test]
    fn one_thread_gets_every_id_in_order_however_many_shards_there_are() {
        for threads in [0, 1, 2, 3, 8, 1000] {
            for len in [0, 1, 2, 3, 15, 16, 1000, 10_007] {
                let mut buffer = buffer(len, threads);
                assert_eq!(buffer.left(), len);
                let taken: Vec<u64> =
                    all(&mut buffer).iter().map(|taken| taken.id.to_u64()).collect();
                assert_eq!(taken, (0..len).collect::<Vec<_>>(), "{threads} {len}");
                assert_eq!((buffer.left(), buffer.handed_out()), (0, len));
                assert_eq!(next(&mut buffer, 6), None);
            }
        }
    }

    #[test]
    fn threads_of_different_shards_take_from_different_stretches() {
        let mut buffer = buffer(10_000, 64);
        let ids = [1, 2, 1, 65].map(|thread| next(&mut buffer, thread).unwrap().id.to_u64());
        // The last has the first one's shard.
        assert_eq!(ids, [0, buffer.chunk as u64, 1, 2]);
        assert_eq!((buffer.handed_out(), buffer.left()), (4, 9_996));
    }

    #[test]
    fn what_is_ended_gives_nothing_more_and_counts_what_stretches_had_left() {
        let mut buffer = buffer(1_000, 2);
        let TakeOutcome::Taken(_, chunk) = buffer.serve(0) else { panic!("it has some") };
        assert!(matches!(chunk.take(), Served::Id { .. }));
        assert_eq!(buffer.end(), (2, 998));
        assert_eq!((chunk.take(), chunk.left()), (Served::Nothing, 0));
    }

    #[test]
    fn whoever_claims_the_middle_is_told_to_fetch_more() {
        for threads in [1, 2, 8] {
            let low: Vec<u64> = all(&mut buffer(1_000, threads))
                .iter()
                .filter(|taken| taken.is_low)
                .map(|taken| taken.id.to_u64())
                .collect();
            assert_eq!(low, [500]);
        }
    }
}
