//! What ran when and where, written down by the work itself, and what must hold of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frazil_coord::Token;
use frazil_coord::internal::time::boot_time;
use frazil_election::processor::Run;

/// One run of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) job: String,
    pub(crate) node: String,
    pub(crate) token: Token,
    /// In boot time.
    pub(crate) begin: Duration,
    /// `None` while it runs.
    pub(crate) end: Option<Duration>,
}

/// Every run of every job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<Span>>>);

/// A run that goes on until this is dropped, however that comes about.
#[derive(Debug)]
pub(crate) struct Entry {
    journal: Journal,
    index: usize,
}

impl Journal {
    pub(crate) fn begin(&self, run: &Run, node: &str) -> Entry {
        let mut spans = self.0.lock().unwrap();
        spans.push(Span {
            job: run.name().to_owned(),
            node: node.to_owned(),
            token: run.token(),
            begin: boot_time(),
            end: None,
        });
        Entry { journal: self.clone(), index: spans.len() - 1 }
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.0.lock().unwrap().clone()
    }

    /// Where each job runs now.
    pub(crate) fn running(&self) -> BTreeMap<String, String> {
        let spans = self.spans().into_iter().filter(|span| span.end.is_none());
        spans.map(|span| (span.job, span.node)).collect()
    }

    pub(crate) fn runs_on(&self, job: &str, node: &str) -> bool {
        self.running().get(job).is_some_and(|on| on == node)
    }

    /// How many jobs run on each of these nodes.
    pub(crate) fn loads(&self, nodes: &[&str]) -> Vec<usize> {
        let running = self.running();
        nodes.iter().map(|node| running.values().filter(|on| on == node).count()).collect()
    }

    /// No job ever ran twice at a time, and tokens rose from one leadership to the next.
    pub(crate) fn check(&self) {
        if let Err(why) = in_order(&self.spans()) {
            panic!("{why}");
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.journal.0.lock().unwrap()[self.index].end = Some(boot_time());
    }
}

/// Says what is wrong if two runs of a job overlap or tokens fall.
pub(crate) fn in_order(spans: &[Span]) -> Result<(), String> {
    for (job, spans) in by_job(spans) {
        for pair in spans.windows(2) {
            let [before, after] = pair else { continue };
            if before.end.is_none_or(|end| end > after.begin) {
                return Err(format!("{job} ran twice at a time: {before:?}, {after:?}"));
            }
            let is_new = before.node != after.node;
            if after.token < before.token || (is_new && after.token == before.token) {
                return Err(format!("{job} went on with an old token: {before:?}, {after:?}"));
            }
        }
    }
    Ok(())
}

/// The longest time that a job did not run between two runs, and which job it was.
pub(crate) fn longest_gap(spans: &[Span]) -> (Duration, String) {
    let mut longest = (Duration::ZERO, String::new());
    for (job, spans) in by_job(spans) {
        for pair in spans.windows(2) {
            let end = pair[0].end.unwrap_or(pair[1].begin);
            longest = longest.max((pair[1].begin.saturating_sub(end), job.clone()));
        }
    }
    longest
}

fn by_job(spans: &[Span]) -> BTreeMap<String, Vec<Span>> {
    let mut jobs: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for span in spans {
        jobs.entry(span.job.clone()).or_default().push(span.clone());
    }
    for spans in jobs.values_mut() {
        spans.sort_by_key(|span| span.begin);
    }
    jobs
}

fn span(node: &str, token: u64, begin: u64, end: Option<u64>) -> Span {
    let (begin, end) = (Duration::from_secs(begin), end.map(Duration::from_secs));
    Span { job: "x".into(), node: node.into(), token: Token(token), begin, end }
}

#[test]
fn a_history_in_which_a_job_ran_twice_at_a_time_is_caught() {
    let good = [span("a", 1, 0, Some(5)), span("b", 2, 5, None)];
    assert_eq!(in_order(&good), Ok(()));
    let overlapping = [span("a", 1, 0, Some(6)), span("b", 2, 5, None)];
    assert!(in_order(&overlapping).unwrap_err().contains("twice"));
    let never_ended = [span("a", 1, 0, None), span("b", 2, 5, None)];
    assert!(in_order(&never_ended).unwrap_err().contains("twice"));
}

#[test]
fn a_history_in_which_a_token_does_not_rise_is_caught() {
    let falling = [span("a", 2, 0, Some(5)), span("b", 1, 6, None)];
    assert!(in_order(&falling).unwrap_err().contains("old token"));
    let same = [span("a", 2, 0, Some(5)), span("b", 2, 6, None)];
    assert!(in_order(&same).unwrap_err().contains("old token"));
}

#[test]
fn a_gap_in_a_history_is_measured() {
    let spans = [span("a", 1, 0, Some(5)), span("b", 2, 8, Some(9)), span("a", 3, 10, None)];
    assert_eq!(longest_gap(&spans), (Duration::from_secs(3), "x".into()));
}
