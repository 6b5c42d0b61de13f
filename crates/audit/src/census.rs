//! The number of IDs of each worker, and the fullest tick.

use crate::cell::{Cell, Cells, Span};
use crate::shape::Shape;

/// Workers that are listed one by one. No layout in use has more than 65,536; one with more would
/// make the list as large as the IDs.
const WORKERS_LISTED: usize = 65_536;

/// The IDs of a set, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census {
    /// How many workers have IDs.
    pub workers: u64,
    /// The workers with their IDs, by number; those with the lowest numbers, if there are more
    /// than 65,536.
    pub by_worker: Vec<WorkerCount>,
    /// The tick in which one worker has the most IDs; `None` if there are no IDs.
    pub busiest: Option<Busiest>,
}

/// How many IDs a worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerCount {
    /// The worker.
    pub worker: u64,
    /// Its IDs.
    pub ids: u64,
}

/// A worker's IDs of one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busiest {
    /// The worker.
    pub worker: u64,
    /// The tick.
    pub tick: u64,
    /// How many IDs.
    pub ids: u64,
}

impl Census {
    /// Counts cells that come with their first keys, in the order of the keys.
    pub(crate) fn of(
        shape: &Shape,
        cells: &Cells,
        by_key: impl Iterator<Item = (u64, Cell)>,
    ) -> Self {
        // A cell is a part of a tick, a tick, or several ticks.
        let part_bits = shape.cell_bits().min(shape.layout().sequence_bits());
        let parts = 1_u16 << (shape.cell_bits() - part_bits);
        let last_of_part = (1_u16 << part_bits) - 1;
        let mut counting = Counting::default();
        for (key, cell) in by_key {
            for part in 0..parts {
                let first = part << part_bits;
                let ids = cells.count(cell, Span { first, last: first + last_of_part });
                if ids > 0 {
                    let (worker, tick) = shape.worker_and_tick(key + u64::from(first));
                    counting.add(Busiest { worker, tick, ids });
                }
            }
        }
        counting.end()
    }
}

/// A census that is not complete: the parts of a tick and the ticks of a worker follow each other.
#[derive(Default)]
struct Counting {
    census: Census,
    tick: Option<Busiest>,
    worker: Option<WorkerCount>,
}

impl Counting {
    fn add(&mut self, part: Busiest) {
        match &mut self.tick {
            Some(tick) if (tick.worker, tick.tick) == (part.worker, part.tick) => {
                tick.ids += part.ids;
            }
            _ => {
                self.close_tick();
                self.tick = Some(part);
            }
        }
    }

    fn close_tick(&mut self) {
        let Some(tick) = self.tick.take() else { return };
        if self.census.busiest.is_none_or(|busiest| busiest.ids < tick.ids) {
            self.census.busiest = Some(tick);
        }
        match &mut self.worker {
            Some(worker) if worker.worker == tick.worker => worker.ids += tick.ids,
            _ => {
                self.close_worker();
                self.worker = Some(WorkerCount { worker: tick.worker, ids: tick.ids });
            }
        }
    }

    fn close_worker(&mut self) {
        let Some(worker) = self.worker.take() else { return };
        self.census.workers += 1;
        if self.census.by_worker.len() < WORKERS_LISTED {
            self.census.by_worker.push(worker);
        }
    }

    fn end(mut self) -> Census {
        self.close_tick();
        self.close_worker();
        self.census
    }
}
