//! The set of all IDs that were seen.

use frazil_id::{Id, Layout, OutsideLayout, Run};

use crate::cell::{Cells, Span};
use crate::census::Census;
use crate::pages::Pages;
use crate::shape::Shape;

/// Exactly which IDs of one layout were seen.
///
/// Nothing is forgotten and nothing is guessed. The memory depends on how the IDs lie:
///
/// | IDs | bytes for each |
/// |---|---|
/// | whole ticks of 4,096 | 0.001 |
/// | 100 a tick for each worker, from 0 on | 0.04 |
/// | one a tick for each worker | 4 |
/// | at random, the worst that can be sent | about 100 |
#[derive(Clone, Debug)]
pub struct IdSet {
    shape: Shape,
    pages: Pages,
    cells: Cells,
    len: u64,
}

impl IdSet {
    /// An empty set for the IDs of a layout.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let shape = Shape::new(layout);
        Self { shape, pages: Pages::new(), cells: Cells::new(shape.cell_bits()), len: 0 }
    }

    /// Adds an ID: true if it is new, false if it was there.
    ///
    /// # Errors
    /// If the ID is of another layout; then nothing is added.
    #[inline]
    pub fn insert(&mut self, id: Id) -> Result<bool, OutsideLayout> {
        let spot = self.shape.spot(self.shape.key(id)?);
        let cell = self.pages.page_mut(spot.page).cell_mut(spot.cell);
        let new = self.cells.insert(cell, spot.at);
        self.len += u64::from(new);
        Ok(new)
    }

    /// Adds a run, as a batch has them; tells how many of its IDs were there before.
    ///
    /// # Errors
    /// If an ID of the run is of another layout; then nothing is added.
    pub fn insert_run(&mut self, run: &Run) -> Result<u64, OutsideLayout> {
        let Some(steps) = run.count.checked_sub(1) else { return Ok(0) };
        let first = run.first.to_u64();
        let last = steps.checked_mul(run.stride).and_then(|length| first.checked_add(length));
        self.shape.key(run.first)?;
        self.shape.key(Id::from_u64(last.unwrap_or(u64::MAX)))?;
        if run.stride == 0 {
            return Ok(steps + u64::from(!self.insert(run.first)?));
        }
        // Where even the highest number is an ID, a run ends with it.
        let mut left = steps.min((u64::MAX - first) / run.stride).saturating_add(1);
        let mut repeated = 0;
        let mut next = first;
        while left > 0 {
            let key = self.shape.key(Id::from_u64(next))?;
            let together = run.stride == self.shape.stride();
            let count = if together { left.min(self.shape.left_in_tick(key)) } else { 1 };
            repeated += count - self.insert_keys(key, count);
            left -= count;
            next = next.wrapping_add(count.wrapping_mul(run.stride));
        }
        Ok(repeated)
    }

    /// Adds neighbouring keys; how many of them are new.
    fn insert_keys(&mut self, first: u64, count: u64) -> u64 {
        let last_at = (1_u64 << self.shape.cell_bits()) - 1;
        let mut added = 0;
        let mut done = 0;
        while done < count {
            let spot = self.shape.spot(first + done);
            let steps = (count - done - 1).min(last_at - u64::from(spot.at));
            #[expect(clippy::cast_possible_truncation, reason = "it does not leave the cell")]
            let span = Span { first: spot.at, last: spot.at + steps as u16 };
            let cell = self.pages.page_mut(spot.page).cell_mut(spot.cell);
            added += self.cells.insert_span(cell, span);
            done += steps + 1;
        }
        self.len += added;
        added
    }

    /// Whether an ID was seen. One of another layout was not.
    #[must_use]
    pub fn contains(&self, id: Id) -> bool {
        let Ok(key) = self.shape.key(id) else { return false };
        let spot = self.shape.spot(key);
        let page = self.pages.page(spot.page);
        page.is_some_and(|page| self.cells.contains(page.cell(spot.cell), spot.at))
    }

    /// How many distinct IDs were seen.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether none was seen.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The layout of the IDs.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        self.shape.layout()
    }

    /// The memory that the set takes, without what the allocator adds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.pages.memory_bytes() + self.cells.memory_bytes()
    }

    /// Counts the IDs of each worker and tick. It looks at all that is known, so call it once.
    #[must_use]
    pub fn census(&self) -> Census {
        let cells = self.pages.sorted().flat_map(|(number, page)| {
            page.iter().map(move |(at, cell)| (self.shape.first_key(number, at), cell))
        });
        Census::of(&self.shape, &self.cells, cells)
    }
}
