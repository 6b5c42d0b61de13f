//! What scenarios look at while they play.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use super::{ISSUES, Stage};
use crate::clock;
use crate::history::RequestRecord;
use crate::node::Node;

impl Stage {
    /// Waits until so many nodes answer requests that were sent from a moment on; how long that took.
    pub(crate) fn all_serve(&self, nodes: usize, since: Duration) -> io::Result<Duration> {
        let what = format!("{nodes} nodes to issue");
        wait_until(&what, ISSUES, || {
            let answers = |node: &usize| self.load.record.first_answer(*node, since).is_some();
            (0..self.nodes.len()).filter(answers).count() >= nodes || !self.goes_on()
        })?;
        Ok(clock::now() - since)
    }

    /// Leases that nodes have noticed the loss of, each; 0 for one that does not answer.
    pub(crate) fn losses(&self) -> Vec<u64> {
        let losses = |node: &Node| node.metric("frazil_lease_lost_total").unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a counter")]
        self.nodes.iter().map(|node| losses(node) as u64).collect()
    }

    /// For how many seconds a node goes on without its store, by its own word.
    pub(crate) fn issuable(&self, node: usize) -> f64 {
        self.nodes[node].metric("frazil_issuable_seconds").unwrap_or(0.0)
    }

    /// Waits until each of these nodes goes on for so long without its store.
    pub(crate) fn can_outlast(&self, nodes: &[usize], outage: Duration) -> io::Result<()> {
        // A window grows as its tenure does.
        let limit = 2 * outage + Duration::from_secs(60);
        let lasts = |node: &usize| self.issuable(*node) > outage.as_secs_f64();
        wait_until("horizons that are far enough", limit, || {
            nodes.iter().all(lasts) || !self.goes_on()
        })
    }

    /// Lets time pass until a time since 1970.
    pub(crate) fn rest_until(&mut self, unix: Duration) {
        let left = unix.saturating_sub(clock::unix());
        self.rest(left);
    }

    /// What these nodes refused from a moment on.
    pub(crate) fn refusals(&self, nodes: &[usize], since: Duration) -> Refusals {
        let mut refusals = Refusals::default();
        for &node in nodes {
            refusals.add(&self.load.record.between(node, since, clock::now()));
        }
        refusals
    }

    /// Nothing that was asked of these nodes from a moment on was refused, or left without an answer.
    pub(crate) fn nothing_refused(&mut self, nodes: &[usize], since: Duration, fault: Duration) {
        let refusals = self.refusals(nodes, since);
        self.verdict.hold("running nodes go on", refusals.failed == 0, || refusals.told(fault));
        self.verdict.guard("requests to running nodes", refusals.asked, 500);
    }

    /// A node issues within a time. How long it took, if it did.
    pub(crate) fn starts_within(
        &mut self,
        node: usize,
        since: Duration,
        limit: Duration,
    ) -> Option<Duration> {
        let left = (since + limit).saturating_sub(clock::now());
        let took = self.recovery(node, since, left).ok();
        let seconds = limit.as_secs();
        let last = self.load.record.between(node, since, clock::now()).pop();
        self.verdict.hold("bounded recovery", took.is_some(), || {
            format!("node {node} gave no ID within {seconds} s; it said last {last:?}")
        });
        took
    }

    /// The latest time since 1970 that any of these nodes may use, all of which hold a worker or have
    /// just lost one. That a node says nothing of it does not mean that it was promised nothing.
    pub(crate) fn promised(&self, nodes: &[usize]) -> io::Result<Duration> {
        let mut latest = Duration::ZERO;
        for &node in nodes {
            let told = self.nodes[node].metric_if_any("frazil_horizon_timestamp_seconds")?;
            latest = latest.max(horizon(node, told)?);
        }
        Ok(latest)
    }
}

/// Requests that got no IDs.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    pub(crate) asked: u64,
    pub(crate) failed: u64,
    first: Option<RequestRecord>,
    last: Option<RequestRecord>,
}

impl Refusals {
    /// Among the requests to one node and those before.
    pub(crate) fn add(&mut self, marks: &[RequestRecord]) {
        self.asked += marks.len() as u64;
        for mark in marks.iter().filter(|mark| mark.ids() == 0) {
            self.failed += 1;
            if self.first.as_ref().is_none_or(|first| mark.asked < first.asked) {
                self.first = Some(mark.clone());
            }
            if self.last.as_ref().is_none_or(|last| mark.asked > last.asked) {
                self.last = Some(mark.clone());
            }
        }
    }

    /// From when to when, counted from a moment.
    pub(crate) fn told(&self, since: Duration) -> String {
        let at = |mark: &Option<RequestRecord>| {
            mark.as_ref().map_or(0.0, |mark| mark.asked.as_secs_f64() - since.as_secs_f64())
        };
        let outcome = self.first.as_ref().map(|mark| &mark.outcome);
        let (first, last) = (at(&self.first), at(&self.last));
        format!(
            "{} of {} requests got no IDs, from {first:+.1} s to {last:+.1} s; the first: {outcome:?}",
            self.failed, self.asked
        )
    }
}

fn horizon(node: usize, told: Option<f64>) -> io::Result<Duration> {
    match told {
        Some(seconds) if seconds > 0.0 => {
            Duration::try_from_secs_f64(seconds).map_err(io::Error::other)
        }
        told => Err(io::Error::other(format!(
            "node {node} may use times, and said {told:?} when asked up to which: what was promised \
             is not known"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Outcome;

    #[test]
    fn a_request_without_ids_is_counted_whatever_was_said() {
        let mark = |second, outcome| {
            let asked = Duration::from_secs(second);
            RequestRecord { asked, answered: asked, outcome }
        };
        let mut refusals = Refusals::default();
        refusals.add(&[mark(1, Outcome::Ids(1))]);
        assert_eq!((refusals.asked, refusals.failed), (1, 0));
        let refused = Outcome::Refused("NO_WORKER".to_owned());
        refusals.add(&[mark(7, Outcome::Lost), mark(5, refused), mark(9, Outcome::Ids(1))]);
        assert_eq!((refusals.asked, refusals.failed), (4, 2));
        let told = refusals.told(Duration::from_secs(4));
        assert!(told.contains("from +1.0 s to +3.0 s") && told.contains("NO_WORKER"), "{told}");
    }

    #[test]
    fn a_horizon_that_is_not_told_is_no_horizon_of_zero() {
        assert_eq!(horizon(0, Some(1.5)).unwrap(), Duration::from_millis(1500));
        for told in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            assert!(horizon(0, told).is_err(), "{told:?}");
        }
    }
}
