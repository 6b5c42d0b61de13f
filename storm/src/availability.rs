//! How well clients were served: while all was quiet, while faults lasted, and just after.

use std::time::Duration;

use serde::Serialize;

use crate::history::{Record, RequestRecord};
use crate::stage::Fault;

/// After a fault this long counts as recovery.
const RECOVERY: Duration = Duration::from_secs(2);

/// What happened to the requests of one kind of time.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Service {
    pub(crate) requests: u64,
    /// Requests that got IDs.
    pub(crate) answered: u64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

/// All kinds of time.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Availability {
    pub(crate) quiet: Service,
    pub(crate) fault: Service,
    pub(crate) recovery: Service,
}

impl Availability {
    /// Sorts the requests of a run by when they were asked.
    pub(crate) fn of(record: &Record, faults: &[Fault]) -> Self {
        let mut times: [Vec<Duration>; 3] = Default::default();
        let mut requests = [0; 3];
        record.fold((), |(), mark| {
            let window = window(mark, faults);
            requests[window] += 1;
            if mark.ids() > 0 {
                times[window].push(mark.answered.saturating_sub(mark.asked));
            }
        });
        let [quiet, fault, recovery] =
            [0, 1, 2].map(|window| Service::new(requests[window], &mut times[window]));
        Self { quiet, fault, recovery }
    }

    /// A line for each kind of time that there was.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let named = [("quiet", &self.quiet), ("fault", &self.fault), ("recovery", &self.recovery)];
        named.into_iter().filter(|(_, service)| service.requests > 0).map(|(name, service)| {
            let Service { requests, answered, p50_ms, p99_ms, max_ms } = service;
            format!(
                "{name}: {answered} of {requests} requests got IDs, p50 {p50_ms:.2} ms, p99 \
                 {p99_ms:.2} ms, max {max_ms:.1} ms"
            )
        })
    }
}

/// What was asked for and answered with IDs while one fault lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct IdsInFault {
    /// By the node that it was done to; none if it was done to the store.
    pub(crate) faulted: Option<AnswerCounts>,
    /// By nodes that nothing was done to; none if there were no such nodes.
    pub(crate) spared: Option<AnswerCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct AnswerCounts {
    pub(crate) answers: u64,
    pub(crate) ids: u64,
}

impl AnswerCounts {
    fn and(self, other: Self) -> Self {
        Self { answers: self.answers + other.answers, ids: self.ids + other.ids }
    }
}

impl IdsInFault {
    /// For each fault of a run.
    pub(crate) fn of(record: &Record, faults: &[Fault]) -> Vec<Self> {
        let count = |node: usize, fault: &Fault| {
            let marks = record.between(node, fault.begin, fault.end);
            let ids = marks.iter().map(RequestRecord::ids).filter(|ids| *ids > 0);
            ids.map(|ids| AnswerCounts { answers: 1, ids })
                .fold(AnswerCounts::default(), AnswerCounts::and)
        };
        let of_fault = |fault: &Fault| {
            let overlaps = |other: &&Fault| other.begin < fault.end && fault.begin < other.end;
            let is_spared = |node: &usize| {
                !faults.iter().filter(overlaps).any(|other| other.node == Some(*node))
            };
            let spared = (0..record.node_count()).filter(is_spared).map(|node| count(node, fault));
            Self {
                faulted: fault.node.map(|node| count(node, fault)),
                spared: spared.reduce(AnswerCounts::and),
            }
        };
        faults.iter().map(of_fault).collect()
    }
}

/// 0 quiet, 1 fault, 2 recovery: a fault counts for more than the recovery from another one.
fn window(mark: &RequestRecord, faults: &[Fault]) -> usize {
    let overlaps = |more: Duration| {
        faults.iter().any(|fault| fault.begin <= mark.answered && mark.asked <= fault.end + more)
    };
    if overlaps(Duration::ZERO) {
        1
    } else if overlaps(RECOVERY) {
        2
    } else {
        0
    }
}

impl Service {
    fn new(requests: u64, times: &mut [Duration]) -> Self {
        times.sort_unstable();
        let at = |per_mille: usize| {
            let place = (times.len() * per_mille / 1000).min(times.len().saturating_sub(1));
            times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        let answered = times.len() as u64;
        Self { requests, answered, p50_ms: at(500), p99_ms: at(990), max_ms: at(1000) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Outcome;

    fn seconds(count: f64) -> Duration {
        Duration::from_secs_f64(count)
    }

    #[test]
    fn ids_of_a_node_in_trouble_are_told_from_those_of_others() {
        let record = Record::new(3);
        let ids = |node, asked, count| {
            let (asked, answered) = (seconds(asked), seconds(asked) + Duration::from_millis(2));
            record.add(node, RequestRecord { asked, answered, outcome: Outcome::Ids(count) });
        };
        let fault =
            |node| Fault { what: String::new(), node, begin: seconds(5.0), end: seconds(6.0) };
        let seen = |faults: &[Fault]| {
            let seen = IdsInFault::of(&record, faults);
            let ids = |given: Option<AnswerCounts>| given.map(|given| given.ids);
            seen.iter().map(|seen| (ids(seen.faulted), ids(seen.spared))).collect::<Vec<_>>()
        };
        ids(1, 4.999, 1);
        ids(1, 5.999, 1);
        assert_eq!(seen(&[fault(Some(0))]), [(Some(0), Some(0))], "not all within it");
        ids(0, 5.5, 10);
        assert_eq!(seen(&[fault(Some(0))]), [(Some(10), Some(0))]);
        ids(1, 5.5, 100);
        ids(2, 5.5, 1000);
        assert_eq!(seen(&[fault(Some(0))]), [(Some(10), Some(1100))]);
        assert_eq!(seen(&[fault(None)]), [(None, Some(1110))]);
        let all = IdsInFault::of(&record, &[fault(None)])[0].spared;
        assert_eq!(all, Some(AnswerCounts { answers: 3, ids: 1110 }));
        let of_two = [fault(Some(0)), fault(Some(1))];
        assert_eq!(seen(&of_two), [(Some(10), Some(1000)), (Some(100), Some(1000))]);
        let of_all = [fault(Some(0)), fault(Some(1)), fault(Some(2))];
        assert_eq!(seen(&of_all)[2], (Some(1000), None));
        let later = Fault { begin: seconds(7.0), end: seconds(8.0), ..fault(Some(0)) };
        assert_eq!(seen(&[fault(Some(0)), later])[1], (Some(0), Some(0)), "each by itself");
    }

    #[test]
    fn requests_count_for_the_time_in_which_they_were_made() {
        let record = Record::new(1);
        for (asked, ids) in [(1.0, 10), (5.5, 10), (5.6, 0), (7.0, 10), (9.0, 10)] {
            let outcome = if ids > 0 { Outcome::Ids(ids) } else { Outcome::Lost };
            let answered = seconds(asked) + Duration::from_millis(2);
            record.add(0, RequestRecord { asked: seconds(asked), answered, outcome });
        }
        let fault =
            Fault { what: String::new(), node: None, begin: seconds(5.0), end: seconds(6.0) };
        let seen = Availability::of(&record, &[fault]);
        let counts = [&seen.quiet, &seen.fault, &seen.recovery].map(|s| (s.requests, s.answered));
        assert_eq!(counts, [(2, 2), (2, 1), (1, 1)]);
        assert!((seen.quiet.p99_ms - 2.0).abs() < 1e-6, "{seen:?}");
        assert_eq!(seen.lines().count(), 3);
    }
}
