//! Tickets, and the IDs that they stand for.

use crate::id::Id;
use crate::layout::Layout;

/// Turns the tickets of one worker into IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    time_shift: u32,
    sequence_bits: u32,
    sequence_shift: u32,
    sequence_mask: u64,
    /// The worker's bits, where they belong.
    worker: u64,
}

impl Stamp {
    pub(crate) fn new(layout: &Layout, worker: u64) -> Self {
        Self {
            time_shift: layout.time_shift(),
            sequence_bits: layout.sequence_bits(),
            sequence_shift: layout.sequence_shift(),
            sequence_mask: layout.last_sequence(),
            worker: worker << layout.worker_shift(),
        }
    }

    #[inline]
    pub(crate) fn id(&self, ticket: u64) -> Id {
        let tick = ticket >> self.sequence_bits;
        let sequence = ticket & self.sequence_mask;
        Id::from_u64(tick << self.time_shift | self.worker | sequence << self.sequence_shift)
    }

    /// How many tickets from this one on have the same tick.
    pub(crate) fn left_in_tick(&self, ticket: u64) -> u64 {
        self.sequence_mask - (ticket & self.sequence_mask) + 1
    }

    /// What lies between two IDs of neighbouring tickets of a tick.
    pub(crate) fn stride(&self) -> u64 {
        1 << self.sequence_shift
    }
}
