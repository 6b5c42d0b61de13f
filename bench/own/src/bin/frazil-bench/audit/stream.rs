//! IDs as an audit meets them, without end.

use frazil_id::{Id, Layout, Parts};

pub(crate) const LAYOUT: Layout = Layout::FRAZIL;
/// What lies between two IDs of neighbouring ticks.
const TICK: u64 = 1 << 22;
/// IDs that are made in advance: enough that a processor does not learn their order.
const IDS: u64 = 409_600;
const WORKERS: u64 = 8;
const PER_TICK: u64 = 100;
/// Ticks within which IDs are out of order: more than a server's lanes run apart.
const SHUFFLED_TICKS: usize = 50;

/// IDs that were made in advance; after the last they begin again, later by all their ticks.
#[derive(Clone)]
pub(crate) struct Stream {
    ids: Vec<Id>,
    ticks: u64,
    at: usize,
    later: u64,
}

impl Stream {
    fn new(ids: Vec<Id>, ticks: u64) -> Self {
        Self { ids, ticks, at: 0, later: 0 }
    }

    /// One worker that uses up every tick.
    pub(crate) fn dense() -> Self {
        let ids = (0..IDS).map(|at| id(at / 4096, 7, at % 4096)).collect();
        Self::new(ids, IDS / 4096)
    }

    /// Workers that take turns ID by ID, each with so many in a millisecond.
    pub(crate) fn interleaved() -> Self {
        let in_tick =
            |tick| (0..PER_TICK * WORKERS).map(move |at| id(tick, at % WORKERS, at / WORKERS));
        let ticks = IDS / (PER_TICK * WORKERS);
        Self::new((0..ticks).flat_map(in_tick).collect(), ticks)
    }

    /// The same, out of order.
    pub(crate) fn shuffled() -> Self {
        let mut stream = Self::interleaved();
        let mut random = 1_u64;
        let stretch = SHUFFLED_TICKS * usize::try_from(PER_TICK * WORKERS).unwrap_or(1);
        for ids in stream.ids.chunks_mut(stretch) {
            for at in (1..ids.len()).rev() {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let other = (random >> 33) % (at as u64 + 1);
                ids.swap(at, usize::try_from(other).unwrap_or(0));
            }
        }
        stream
    }

    /// Hands out the next IDs.
    #[inline]
    pub(crate) fn each(&mut self, count: usize, mut take: impl FnMut(Id)) {
        let mut left = count;
        while left > 0 {
            let part = left.min(self.ids.len() - self.at);
            for id in &self.ids[self.at..self.at + part] {
                take(Id::from_u64(id.to_u64() + self.later));
            }
            left -= part;
            self.at += part;
            if self.at == self.ids.len() {
                self.at = 0;
                self.later += self.ticks * TICK;
            }
        }
    }
}

fn id(tick: u64, worker: u64, sequence: u64) -> Id {
    let parts = Parts { tick: 1_000_000 + tick, worker, sequence };
    LAYOUT.encode(parts).expect("the fields fit the layout")
}
