//! The check itself: no ID twice, all in order, and answers that are what was asked for.

use std::collections::HashMap;

use frazil_audit::IdSet;
use frazil_id::{Id, Layout, Parts, Run};
use serde::{Deserialize, Serialize};

/// Findings that are told one by one; the others are counted.
const FINDINGS_MAX: usize = 10;

/// Where an answer ends among the runs of its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) runs_end: usize,
    /// The worker that the answer names, if it does.
    pub(crate) worker: Option<u32>,
    /// How many IDs were asked for, where one answer has them all.
    pub(crate) asked: Option<u64>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// IDs that were checked.
    pub(crate) ids: u64,
    /// IDs that had come before.
    pub(crate) duplicates: u64,
    /// IDs that are not larger than the one before of the same worker and connection.
    pub(crate) out_of_order: u64,
    /// Answers with too many IDs or too few, of several workers or of none.
    pub(crate) wrong_answers: u64,
    /// Whether IDs had to be larger than the one before whichever worker they are of.
    #[serde(default)]
    pub(crate) is_strict: bool,
    /// The first of all these, in words.
    pub(crate) findings: Vec<String>,
    /// What the set of all IDs takes.
    pub(crate) memory_bytes: u64,
}

impl Verdict {
    pub(crate) const fn faults(&self) -> u64 {
        self.duplicates + self.out_of_order + self.wrong_answers
    }
}

/// What is known of the IDs so far.
#[derive(Debug)]
pub(crate) struct Check {
    layout: Layout,
    seen: IdSet,
    is_strict: bool,
    /// The last ID of each connection and worker.
    last: HashMap<(usize, u64), Id>,
    verdict: Verdict,
}

impl Check {
    pub(crate) fn new(layout: &Layout, is_strict: bool) -> Self {
        Self {
            layout: *layout,
            seen: IdSet::new(layout),
            is_strict,
            last: HashMap::new(),
            verdict: Verdict::default(),
        }
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) const fn checked(&self) -> u64 {
        self.verdict.ids
    }

    pub(crate) const fn findings(&self) -> u64 {
        self.verdict.faults()
    }

    /// Answers of one connection, in the order in which they came: runs with the first ID and how
    /// many there are.
    pub(crate) fn answers(
        &mut self,
        connection: usize,
        runs: &[(u64, u32)],
        stride: u64,
        answers: &[Answer],
    ) {
        let mut begin = 0;
        for answer in answers {
            let runs = &runs[begin..answer.runs_end];
            let count: u64 = runs.iter().map(|(_, count)| u64::from(*count)).sum();
            if let Some(asked) = answer.asked.filter(|asked| *asked != count) {
                self.verdict.wrong_answers += 1;
                self.tell(|| format!("an answer has {count} IDs instead of {asked}"));
            }
            let mut worker = answer.worker.map(u64::from);
            for (first, count) in runs {
                let (first, count) = (Id::from_u64(*first), u64::from(*count));
                self.run(connection, &mut worker, &Run { first, count, stride });
            }
            begin = answer.runs_end;
        }
    }

    pub(crate) fn into_verdict(self) -> Verdict {
        let memory_bytes = self.seen.memory_bytes() as u64;
        Verdict { memory_bytes, is_strict: self.is_strict, ..self.verdict }
    }

    /// IDs that follow each other in one answer, whose worker may be known.
    fn run(&mut self, connection: usize, worker: &mut Option<u64>, run: &Run) {
        match (run.first.parts(&self.layout), end_of(run).parts(&self.layout)) {
            (Ok(first), Ok(end)) if is_one_tick(&first, &end) => {
                self.stretch(connection, worker, run, &first);
            }
            _ if run.count == 1 => {
                self.verdict.ids += 1;
                self.verdict.wrong_answers += 1;
                let (id, layout) = (run.first, self.layout);
                self.tell(|| format!("{id} is not an ID of the layout \"{layout}\""));
            }
            // It crosses a tick: one by one.
            _ => {
                for place in 0..run.count {
                    let first = run.first.to_u64().wrapping_add(place.wrapping_mul(run.stride));
                    let one = Run { first: Id::from_u64(first), count: 1, stride: run.stride };
                    self.run(connection, worker, &one);
                }
            }
        }
    }

    /// IDs of one tick and worker.
    fn stretch(&mut self, connection: usize, worker: &mut Option<u64>, run: &Run, parts: &Parts) {
        self.verdict.ids += run.count;
        let expected = *worker.get_or_insert(parts.worker);
        if expected != parts.worker {
            self.verdict.wrong_answers += 1;
            let (id, actual) = (run.first, parts.worker);
            self.tell(|| format!("{id} of worker {actual} is in an answer of worker {expected}"));
        }
        self.order(connection, run, parts.worker);
        let repeated = self.seen.insert_run(run).unwrap_or_default();
        if repeated > 0 {
            self.verdict.duplicates += repeated;
            let (first, count) = (run.first, run.count);
            self.tell(|| match count {
                1 => format!("{first} came twice"),
                _ => format!("of {count} IDs from {first} on, {repeated} had come before"),
            });
        }
    }

    fn order(&mut self, connection: usize, run: &Run, worker: u64) {
        // The IDs of a strict scope increase whichever worker they are of.
        let key = (connection, if self.is_strict { 0 } else { worker });
        let before = self.last.insert(key, end_of(run));
        if let Some(before) = before.filter(|before| *before >= run.first) {
            self.verdict.out_of_order += 1;
            let id = run.first;
            self.tell(|| format!("{before} was followed by {id} on one connection"));
        }
    }

    fn tell(&mut self, finding: impl FnOnce() -> String) {
        if self.verdict.findings.len() < FINDINGS_MAX {
            self.verdict.findings.push(finding());
        }
    }
}

/// The last ID of a run that has one. What wraps is of another tick.
const fn end_of(run: &Run) -> Id {
    let length = run.count.saturating_sub(1).wrapping_mul(run.stride);
    Id::from_u64(run.first.to_u64().wrapping_add(length))
}

const fn is_one_tick(first: &Parts, end: &Parts) -> bool {
    first.tick == end.tick && first.worker == end.worker && first.sequence <= end.sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(tick: u64, worker: u64, sequence: u64) -> u64 {
        Layout::FRAZIL.encode(Parts { tick, worker, sequence }).unwrap().to_u64()
    }

    /// The connection, the worker that it names, how many were asked for, and the runs.
    type ReceivedIds<'a> = (usize, Option<u32>, u64, &'a [(u64, u32)]);

    fn verdict(is_strict: bool, answers: &[ReceivedIds<'_>]) -> Verdict {
        let mut check = Check::new(&Layout::FRAZIL, is_strict);
        for (connection, worker, asked, runs) in answers {
            let answer = Answer { runs_end: runs.len(), worker: *worker, asked: Some(*asked) };
            check.answers(*connection, runs, 1, &[answer]);
        }
        check.into_verdict()
    }

    #[test]
    fn what_is_well_is_found_well() {
        let fine = verdict(
            false,
            &[
                (0, Some(3), 4096, &[(id(5, 3, 0), 4096)]),
                (0, None, 2, &[(id(5, 2, 0), 1), (id(6, 2, 0), 1)]),
                (1, None, 1, &[(id(4, 3, 0), 1)]),
                (0, None, 1, &[(id(6, 3, 0), 1)]),
            ],
        );
        assert_eq!((fine.ids, fine.faults(), fine.findings.len()), (4100, 0, 0), "{fine:?}");
    }

    #[test]
    fn an_id_that_comes_twice_is_found_wherever_it_comes() {
        let twice = [(0, None, 1, &[(id(5, 3, 7), 1)][..]), (1, None, 1, &[(id(5, 3, 7), 1)])];
        let found = verdict(false, &twice);
        assert_eq!((found.duplicates, found.out_of_order, found.wrong_answers), (1, 0, 0));
        assert_eq!(found.findings, [format!("{} came twice", id(5, 3, 7))]);
        let overlap = [(0, None, 9, &[(id(5, 3, 0), 9)][..]), (1, None, 9, &[(id(5, 3, 4), 9)])];
        assert_eq!(verdict(false, &overlap).duplicates, 5);
    }

    #[test]
    fn an_id_that_goes_back_is_found() {
        let back = [(0, None, 1, &[(id(5, 3, 7), 1)][..]), (0, None, 1, &[(id(5, 3, 6), 1)])];
        let found = verdict(false, &back);
        assert_eq!((found.duplicates, found.out_of_order), (0, 1));
        assert!(found.findings[0].contains("was followed by"), "{found:?}");
        let workers = [(0, None, 1, &[(id(5, 3, 7), 1)][..]), (0, None, 1, &[(id(5, 2, 6), 1)])];
        assert_eq!(verdict(false, &workers).out_of_order, 0);
        assert_eq!(verdict(true, &workers).out_of_order, 1, "not in a strict scope");
    }

    #[test]
    fn answers_are_what_was_asked_for_and_of_one_worker() {
        for (worker, asked, runs) in [
            (None, 2, &[(id(5, 3, 0), 1)][..]),
            (None, 2, &[(id(5, 3, 0), 1), (id(5, 4, 0), 1)]),
            (Some(4), 1, &[(id(5, 3, 0), 1)]),
            (None, 2, &[(id(5, 3, 4095), 2)]),
            (None, 1, &[(u64::MAX, 1)]),
        ] {
            let found = verdict(false, &[(0, worker, asked, runs)]);
            assert_eq!((found.wrong_answers, found.findings.len()), (1, 1), "{found:?}");
        }
    }

    #[test]
    fn findings_without_end_are_counted_and_not_kept() {
        let one = [(id(5, 3, 7), 1)];
        let again = vec![(0, None, 1, &one[..]); 1000];
        let found = verdict(false, &again);
        assert_eq!((found.duplicates, found.findings.len()), (999, FINDINGS_MAX));
    }
}
