//! The IDs of one call.

use alloc::vec::Vec;
use core::iter::FusedIterator;

use crate::id::Id;
use crate::layout::Layout;
use crate::step::Granted;
use crate::ticket::Stamp;

/// The IDs of one call: exactly as many as asked for, sorted.
///
/// ```
/// use frazil_id::{Generator, Layout, ManualClock, Options};
///
/// let clock = ManualClock::new(&Layout::FRAZIL, 1_000);
/// let options = Options::default().with_floor(999);
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

    /// Puts a batch together again from its IDs, as another process sent them. `None`: they are not
    /// all of the layout and of one worker, or do not ascend.
    #[must_use]
    pub fn from_ids(layout: &Layout, ids: impl IntoIterator<Item = Id>) -> Option<Self> {
        let mut ids = ids.into_iter().peekable();
        let worker = ids.peek()?.parts(layout).ok()?.worker;
        let mut batch = Self::empty(Stamp::new(layout, worker));
        for id in ids {
            let parts = id.parts(layout).ok().filter(|parts| parts.worker == worker)?;
            let first = parts.tick << layout.sequence_bits() | parts.sequence;
            if !batch.is_empty() && first <= batch.last() {
                return None;
            }
            batch.push(Granted { first, count: 1 });
        }
        Some(batch)
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

    /// Adds the IDs of a later call to the same generator.
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

    /// The first and the last ID, if there are any.
    #[must_use]
    pub fn ends(&self) -> Option<(Id, Id)> {
        (!self.is_empty()).then(|| (self.stamp.id(self.first.first), self.stamp.id(self.last())))
    }

    /// How many IDs there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The IDs, in order.
    #[must_use]
    pub fn iter(&self) -> Ids<'_> {
        let run = Run { first: Id::from_u64(0), count: 0, stride: 0 };
        Ids { left: self.len, runs: self.runs(), run }
    }

    /// The IDs as stretches of one tick each.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs { stamp: self.stamp, granted: self.first, more: &self.more }
    }

    /// Writes the IDs into the start of a buffer, and returns that part of it.
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

/// IDs of one tick, evenly apart: `first`, `first + stride`, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first ID.
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

/// Iterates over the IDs of a [`Batch`].
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::generator::{Generator, Within};
    use crate::not_ready::NotReady;
    use crate::options::Options;

    #[test]
    fn ids_that_were_sent_become_the_batch_again() {
        for layout in [
            Layout::FRAZIL,
            "time:39 sequence:8 worker:16 @2014-09-01T00:00:00Z tick:10ms".parse().unwrap(),
        ] {
            let clock = ManualClock::new(&layout, 1_000);
            let options = Options { floor: Some(999), ..Options::default() };
            let ids = Generator::new(&layout, 3, clock, options).unwrap();
            let batch = ids.try_batch(200).unwrap();
            assert_eq!(Batch::from_ids(&layout, &batch), Some(batch.clone()));
            let sent: Vec<Id> = batch.iter().collect();
            assert_eq!(batch.ends(), Some((sent[0], sent[199])));
            assert_eq!(Batch::from_ids(&layout, sent.iter().rev().copied()), None);
            assert_eq!(Batch::from_ids(&layout, [sent[0], sent[0]]), None);
            assert_eq!(Batch::from_ids(&layout, [Id::from_u64(u64::MAX)]), None);
            assert_eq!(Batch::from_ids(&layout, []), None);
        }
    }

    #[test]
    fn a_call_keeps_to_its_own_ticks_and_harms_no_other() {
        let layout = Layout::FRAZIL;
        let clock = ManualClock::new(&layout, 1_000);
        let options = Options { floor: Some(999), horizon: Some(2_000), ..Options::default() };
        let ids = Generator::new(&layout, 3, &clock, options).unwrap();
        let tick = |batch: Batch| batch.ends().unwrap().0.parts(&layout).unwrap().tick;
        let within = |above, up_to| Within { above, up_to };
        assert_eq!(ids.try_up_to_within(1, within(0, 1_000)).map(tick), Ok(1_000));
        assert_eq!(
            ids.try_batch_within(1, within(0, 999)),
            Err(NotReady::Horizon { horizon: 999 })
        );
        let early = ids.try_batch_within(1, within(1_004, 3_000)).unwrap_err();
        assert!(matches!(early, NotReady::SequenceExhausted { .. }), "{early:?}");
        assert_eq!(ids.try_batch(1).map(tick), Ok(1_000));
        clock.advance(5);
        assert_eq!(ids.try_batch_within(1, within(1_004, 3_000)).map(tick), Ok(1_005));
        clock.advance(996);
        assert_eq!(
            ids.try_batch_within(1, within(1_004, 3_000)),
            Err(NotReady::Horizon { horizon: 2_000 })
        );
    }
}
