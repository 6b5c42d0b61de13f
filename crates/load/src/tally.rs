//! The results of the requests of one thread.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::fault::Fault;
use crate::schedule::Unsent;

/// An hour in nanoseconds: whatever takes longer counts as that.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
/// Digits of a latency that are right.
const DIGITS: u8 = 3;

/// Requests that were due within the measurement.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// From when a request was due until its answer was there, in nanoseconds.
    pub(crate) latency: Histogram<u64>,
    pub(crate) requests: u64,
    pub(crate) ids: u64,
    /// How often each fault happened, by its name.
    pub(crate) errors: BTreeMap<String, u64>,
    /// How late a request was sent at the most.
    pub(crate) behind: Duration,
    /// When a request succeeded last, and when one failed.
    pub(crate) last_answer: Option<Instant>,
    pub(crate) last_fault: Option<Instant>,
    /// Requests that were due and never sent.
    pub(crate) unsent: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, LATENCY_MAX_NS, DIGITS);
        Self {
            latency: latency.expect("the bounds are valid"),
            requests: 0,
            ids: 0,
            errors: BTreeMap::new(),
            behind: Duration::ZERO,
            last_answer: None,
            last_fault: None,
            unsent: 0,
        }
    }

    pub(crate) fn answered(&mut self, took: Duration, ids: u64) {
        self.requests += 1;
        self.ids += ids;
        self.latency.saturating_record(nanoseconds(took));
    }

    /// One that was waited for in vain took at least as long: without it a server that stalls would
    /// look quick.
    pub(crate) fn failed(&mut self, fault: &Fault, waited: Duration) {
        if matches!(fault, Fault::TimedOut) {
            self.latency.saturating_record(nanoseconds(waited));
        }
        match self.errors.get_mut(fault.name()) {
            Some(count) => *count += 1,
            None => drop(self.errors.insert(fault.name().to_owned(), 1)),
        }
    }

    /// Requests that were never sent waited until the end at least: without them the latencies would
    /// be those of the requests that a slow server let through. All that fall into one step of the
    /// histogram are recorded together, for there may be billions.
    pub(crate) fn unsent(&mut self, mut unsent: Unsent) {
        self.unsent += unsent.count();
        let step = |latency: &Histogram<u64>, waited| {
            Duration::from_nanos(latency.lowest_equivalent(nanoseconds(waited).min(LATENCY_MAX_NS)))
        };
        while let Some((waited, count)) = unsent.take(|waited| step(&self.latency, waited)) {
            self.latency.saturating_record_n(nanoseconds(waited), count);
        }
    }

    /// Whether what came last was a failure.
    pub(crate) fn ends_in_failure(&self) -> bool {
        self.last_fault.is_some() && self.last_fault > self.last_answer
    }

    pub(crate) fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Moves everything over there.
    pub(crate) fn pour_into(&mut self, sum: &mut Self) {
        sum.latency.add(&self.latency).expect("all have the same bounds");
        self.latency.reset();
        sum.requests += std::mem::take(&mut self.requests);
        sum.ids += std::mem::take(&mut self.ids);
        for (name, count) in std::mem::take(&mut self.errors) {
            *sum.errors.entry(name).or_default() += count;
        }
        sum.last_answer = sum.last_answer.max(self.last_answer);
        sum.last_fault = sum.last_fault.max(self.last_fault);
        sum.behind = sum.behind.max(std::mem::take(&mut self.behind));
        sum.unsent += std::mem::take(&mut self.unsent);
    }

    /// The latency that a part of the requests did not exceed.
    pub(crate) fn quantile(&self, part: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_quantile(part))
    }
}

pub(crate) fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Pace, Series, Times};

    #[test]
    fn what_is_poured_is_counted_once() {
        let (mut one, mut sum) = (Tally::new(), Tally::new());
        one.answered(Duration::from_millis(2), 10);
        one.failed(&Fault::TimedOut, Duration::from_secs(1));
        one.behind = Duration::from_millis(7);
        one.pour_into(&mut sum);
        one.failed(&Fault::TimedOut, Duration::from_secs(1));
        one.answered(Duration::from_hours(9), 10);
        one.pour_into(&mut sum);
        one.pour_into(&mut sum);
        assert_eq!((sum.requests, sum.ids, sum.errors()), (2, 20, 2));
        // What was waited for in vain took time too.
        assert_eq!((sum.latency.len(), one.latency.len()), (4, 0));
        assert_eq!(sum.behind, Duration::from_millis(7));
        assert!(sum.quantile(0.5) >= Duration::from_millis(2));
        assert!(sum.quantile(1.0) > Duration::from_mins(59), "it counts as an hour");
    }

    #[test]
    fn those_that_were_never_sent_waited_until_the_end_one_by_one_or_together() {
        let start = crate::moment::now();
        let begin = start + Duration::from_millis(300);
        let times = Times { start, begin, end: start + Duration::from_millis(2500) };
        for (rate, connections, place) in [(7, 3, 2), (1000, 1, 0), (100_000, 7, 5)] {
            let series = Series { rate, connections, place };
            let pace = Pace::of(series, 11);
            let (mut one, mut all) = (Tally::new(), Tally::new());
            let mut unsent = pace.unsent(&times);
            while let Some((waited, count)) = unsent.take(|waited| waited) {
                assert!(count == 1 && waited <= Duration::from_millis(2200), "{series:?}");
                one.latency.saturating_record(nanoseconds(waited));
            }
            all.unsent(pace.unsent(&times));
            assert_eq!(all.unsent, all.latency.len(), "{series:?}");
            assert_eq!(one.latency, all.latency, "{series:?}");
        }
    }

    #[test]
    fn billions_that_were_never_sent_take_no_time() {
        let start = crate::moment::now();
        let times = Times { start, begin: start, end: start + Duration::from_hours(24) };
        let mut tally = Tally::new();
        let pace = Pace::of(Series { rate: 10_000_000, connections: 1, place: 0 }, 0);
        tally.unsent(pace.unsent(&times));
        assert_eq!((tally.unsent, tally.latency.len()), (864_000_000_000, 864_000_000_000));
        assert!(tally.quantile(0.01) < tally.quantile(0.04) && !tally.quantile(0.01).is_zero());
    }
}
