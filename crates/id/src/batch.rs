//! What one call issued.

use alloc::vec::Vec;
use core::iter::FusedIterator;

use crate::id::Id;
use crate::step::Granted;
use crate::ticket::Stamp;

/// The Ids of one call: exactly as many as asked for, sorted.
///
/// ```
/// use frazil_id::{Generator, Layout, ManualClock, Options};
///
/// let clock = ManualClock::new(&Layout::FRAZIL, 1_000);
/// let options = Options { floor: Some(999), ..Options::default() };
/// let ids = Generator::new(&Layout::FRAZIL, 3, clock, options)?;
/// let batch = ids.try_batch(100)?;
/// assert_eq!(batch.len(), 100);
/// assert!(batch.iter().is_sorted());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    stamp: Stamp,
    len: usize,
    first: Granted,
    /// Grants that do not join onto the one before: only when whole ticks passed in between.
    more: Vec<Granted>,
}

impl Batch {
    pub(crate) const fn empty(stamp: Stamp) -> Self {
        Self { stamp, len: 0, first: Granted { first: 0, count: 0 }, more: Vec::new() }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a grant is at most the u32 asked for")]
    pub(crate) fn push(&mut self, granted: Granted) {
        self.len += granted.count as usize;
        let tail = self.more.last_mut().unwrap_or(&mut self.first);
        if tail.count == 0 {
            *tail = granted;
        } else if tail.last() + 1 == granted.first {
            tail.count += granted.count;
        } else {
            self.more.push(granted);
        }
    }

    /// Adds the Ids of a later call to the same generator.
    ///
    /// # Errors
    /// The other batch, if it is of another worker or not later.
    pub fn join(&mut self, later: Self) -> Result<(), Self> {
        let follows = self.is_empty() || later.is_empty() || self.last() < later.first.first;
        if self.stamp != later.stamp || !follows {
            return Err(later);
        }
        for granted in core::iter::once(later.first).chain(later.more) {
            if granted.count > 0 {
                self.push(granted);
            }
        }
        Ok(())
    }

    /// The last ticket.
    fn last(&self) -> u64 {
        self.more.last().unwrap_or(&self.first).last()
    }

    /// How many Ids there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The Ids, in order.
    #[must_use]
    pub fn iter(&self) -> Ids<'_> {
        let run = Run { first: Id::from_u64(0), count: 0, stride: 0 };
        Ids { left: self.len, runs: self.runs(), run }
    }

    /// The Ids as stretches of one tick each.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs { stamp: self.stamp, granted: self.first, more: &self.more }
    }

    /// Writes the Ids into the start of a buffer, and returns that part of it.
    ///
    /// # Panics
    /// If the buffer is shorter than the batch.
    pub fn copy_to<'a>(&self, buffer: &'a mut [Id]) -> &'a mut [Id] {
        let (filled, _) = buffer.split_at_mut(self.len);
        let mut rest = &mut *filled;
        for run in self.runs() {
            let (head, tail) = rest.split_at_mut(run.len());
            for (place, id) in head.iter_mut().zip(0..) {
                *place = run.id(id);
            }
            rest = tail;
        }
        filled
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = Id;
    type IntoIter = Ids<'a>;

    fn into_iter(self) -> Ids<'a> {
        self.iter()
    }
}

/// Ids of one tick, evenly apart: `first`, `first + stride`, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first Id.
    pub first: Id,
    /// How many.
    pub count: u64,
    /// What lies between two of them: 1 unless the layout puts the worker below the sequence.
    pub stride: u64,
}

impl Run {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a run is part of a batch, which has a len"
    )]
    const fn len(&self) -> usize {
        self.count as usize
    }

    const fn id(&self, index: u64) -> Id {
        Id::from_u64(self.first.to_u64() + index * self.stride)
    }
}

/// Iterates over the runs of a [`Batch`].
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    stamp: Stamp,
    granted: Granted,
    more: &'a [Granted],
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.granted.count == 0 {
            let (next, more) = self.more.split_first()?;
            (self.granted, self.more) = (*next, more);
        }
        let first = self.granted.first;
        let count = self.granted.count.min(self.stamp.left_in_tick(first));
        self.granted = Granted { first: first + count, count: self.granted.count - count };
        Some(Run { first: self.stamp.id(first), count, stride: self.stamp.stride() })
    }
}

impl FusedIterator for Runs<'_> {}

/// Iterates over the Ids of a [`Batch`].
#[derive(Clone, Debug)]
pub struct Ids<'a> {
    left: usize,
    runs: Runs<'a>,
    run: Run,
}

impl Iterator for Ids<'_> {
    type Item = Id;

    #[inline]
    fn next(&mut self) -> Option<Id> {
        if self.run.count == 0 {
            self.run = self.runs.next()?;
        }
        let id = self.run.first;
        self.run.count -= 1;
        self.left -= 1;
        self.run.first = Id::from_u64(id.to_u64().wrapping_add(self.run.stride));
        Some(id)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Ids<'_> {}
impl FusedIterator for Ids<'_> {}
