//! A batch piece by piece: what is not written yet takes no memory.

use frazil::Batch;
use frazil_id::{Id, Run};

/// IDs of one piece: some 64 kilobytes of text.
const PIECE: u64 = 2048;

/// The IDs of a batch in stretches that are written one at a time.
#[derive(Debug)]
pub(crate) struct Pieces {
    runs: std::vec::IntoIter<Run>,
    /// What is left of the run that is being written.
    rest: Option<Run>,
}

impl Pieces {
    pub(crate) fn new(batch: &Batch) -> Self {
        Self { runs: batch.runs().collect::<Vec<_>>().into_iter(), rest: None }
    }
}

impl Pieces {
    /// Whether everything was given.
    pub(crate) fn is_done(&self) -> bool {
        self.rest.is_none() && self.runs.as_slice().is_empty()
    }
}

impl Iterator for Pieces {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let run = self.rest.take().or_else(|| self.runs.next())?;
        let count = run.count.min(PIECE);
        if count < run.count {
            let first = Id::from_u64(run.first.to_u64() + count * run.stride);
            self.rest = Some(Run { first, count: run.count - count, ..run });
        }
        Some(Run { count, ..run })
    }
}

/// How many digits all IDs of a batch have together.
pub(crate) fn digits_of(batch: &Batch) -> u64 {
    batch.runs().map(|run| digits_of_run(&run)).sum()
}

fn digits_of_run(run: &Run) -> u64 {
    let at = |place: u64| digits(run.first.to_u64() + place * run.stride);
    match (run.count, shared_digits(run)) {
        (count, Some(digits)) => digits * count,
        (count, None) => (0..count).map(at).sum(),
    }
}

/// How many digits each ID of a run has, if all have as many.
pub(crate) fn shared_digits(run: &Run) -> Option<u64> {
    let last = run.first.to_u64() + run.count.saturating_sub(1) * run.stride;
    let (first, last) = (digits(run.first.to_u64()), digits(last));
    (first == last).then_some(first)
}

fn digits(number: u64) -> u64 {
    u64::from(number.checked_ilog10().unwrap_or(0)) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole() {
        let run = Run { first: Id::from_u64(90), count: 5000, stride: 3 };
        let pieces = Pieces { runs: vec![run].into_iter(), rest: None };
        let all: Vec<u64> = pieces
            .flat_map(|run| (0..run.count).map(move |n| run.first.to_u64() + n * run.stride))
            .collect();
        assert_eq!(all, (0..5000).map(|n| 90 + n * 3).collect::<Vec<_>>());
    }

    #[test]
    fn digits_are_counted_as_they_are_written() {
        for (first, count, stride) in [(0, 1, 1), (5, 10, 1), (9, 1, 1), (0, 2000, 7), (99, 2, 900)]
        {
            let run = Run { first: Id::from_u64(first), count, stride };
            let written: usize = (0..count).map(|n| (first + n * stride).to_string().len()).sum();
            assert_eq!(digits_of_run(&run), written as u64, "{run:?}");
        }
    }
}
