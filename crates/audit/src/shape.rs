//! The place of an ID: from the bits of any layout to one order of numbers.

use frazil_id::{Id, Layout, OutsideLayout, Parts};

/// A cell of fewer numbers costs more than it saves, whatever the sequence.
const CELL_BITS_MIN: u32 = 6;
/// A cell of more numbers costs too much for the few that may be in it. It is the sequence of the
/// default layout: there a cell is what one worker issues in a tick.
pub(crate) const CELL_BITS_MAX: u32 = 12;
/// A page has 1,024 cells.
pub(crate) const PAGE_BITS: u32 = 10;

/// Turns the IDs of a layout into keys: the worker on top, then the tick, then the sequence.
///
/// Every ID has a key of its own and every key at most one ID, so a set of keys is a set of IDs.
/// What one worker issues in a stretch of time is a stretch of keys, in every layout. A key is a
/// cell and a place in it; a wide sequence has many cells in a tick, and a narrow one has many
/// ticks in a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    layout: Layout,
    last_id: u64,
    time_shift: u32,
    worker_shift: u32,
    sequence_shift: u32,
    /// Where the worker stands in a key.
    key_worker_shift: u32,
    last_worker: u64,
    last_sequence: u64,
    sequence_bits: u32,
    cell_bits: u32,
}

/// Where a key belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The page's number.
    pub(crate) page: u64,
    /// The cell in the page.
    pub(crate) cell: u16,
    /// The place in the cell.
    pub(crate) at: u16,
}

impl Shape {
    pub(crate) fn new(layout: &Layout) -> Self {
        let shift = |parts| layout.encode(parts).map_or(0, |id| id.to_u64().trailing_zeros());
        let unit = Parts { tick: 0, worker: 0, sequence: 0 };
        let worker_bits = layout.worker_bits();
        Self {
            layout: *layout,
            last_id: u64::MAX >> (64 - layout.bits()),
            time_shift: shift(Parts { tick: 1, ..unit }),
            // A field without bits is always 0, wherever it is shifted.
            worker_shift: shift(Parts { worker: 1, ..unit }),
            sequence_shift: shift(Parts { sequence: 1, ..unit }),
            key_worker_shift: match worker_bits {
                0 => 0,
                _ => layout.time_bits() + layout.sequence_bits(),
            },
            last_worker: layout.last_worker(),
            last_sequence: layout.last_sequence(),
            sequence_bits: layout.sequence_bits(),
            cell_bits: layout.sequence_bits().clamp(CELL_BITS_MIN, CELL_BITS_MAX),
        }
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) const fn cell_bits(&self) -> u32 {
        self.cell_bits
    }

    #[inline]
    pub(crate) fn key(&self, id: Id) -> Result<u64, OutsideLayout> {
        let bits = id.to_u64();
        if bits > self.last_id {
            return self.outside(id);
        }
        let tick = bits >> self.time_shift;
        let worker = bits >> self.worker_shift & self.last_worker;
        let sequence = bits >> self.sequence_shift & self.last_sequence;
        Ok(worker << self.key_worker_shift | tick << self.sequence_bits | sequence)
    }

    #[cold]
    fn outside(&self, id: Id) -> Result<u64, OutsideLayout> {
        self.layout.decode(id).map(|_| unreachable!("an ID above the last one is outside"))
    }

    /// What lies between two IDs with neighbouring keys of one tick.
    pub(crate) const fn stride(&self) -> u64 {
        1 << self.sequence_shift
    }

    /// How many keys from this one on have the same worker and tick.
    pub(crate) const fn left_in_tick(&self, key: u64) -> u64 {
        (self.last_sequence - (key & self.last_sequence)).saturating_add(1)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "masked to fewer than 16 bits")]
    pub(crate) const fn spot(&self, key: u64) -> Spot {
        let cell = key >> self.cell_bits;
        Spot {
            page: cell >> PAGE_BITS,
            cell: (cell & ((1 << PAGE_BITS) - 1)) as u16,
            at: (key & ((1 << self.cell_bits) - 1)) as u16,
        }
    }

    /// The first key of a cell.
    pub(crate) const fn first_key(&self, page: u64, cell: u16) -> u64 {
        (page << PAGE_BITS | cell as u64) << self.cell_bits
    }

    /// The worker and the tick of a key.
    pub(crate) const fn worker_and_tick(&self, key: u64) -> (u64, u64) {
        let tick = key >> self.sequence_bits & self.layout.last_tick();
        match self.key_worker_shift {
            0 => (0, tick),
            shift => (key >> shift, tick),
        }
    }
}
