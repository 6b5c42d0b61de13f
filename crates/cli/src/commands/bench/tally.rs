//! What the requests of one thread came to.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::fault::Fault;

/// An hour in nanoseconds: whatever takes longer counts as that.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
/// Digits of a latency that are right.
const DIGITS: u8 = 3;

/// Requests that were due within the measurement.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// From when a request was due until its answer was there, in nanoseconds.
    pub(super) latency: Histogram<u64>,
    pub(super) requests: u64,
    pub(super) ids: u64,
    /// How often each fault happened, by its name.
    pub(super) errors: BTreeMap<String, u64>,
    /// How late a request was sent at the most.
    pub(super) behind: Duration,
    /// Requests that were due and never sent.
    pub(super) unsent: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, LATENCY_MAX_NS, DIGITS);
        Self {
            latency: latency.expect("the bounds are valid"),
            requests: 0,
            ids: 0,
            errors: BTreeMap::new(),
            behind: Duration::ZERO,
            unsent: 0,
        }
    }

    pub(super) fn answered(&mut self, took: Duration, ids: u64) {
        self.requests += 1;
        self.ids += ids;
        self.latency.saturating_record(nanoseconds(took));
    }

    /// One that was waited for in vain took at least as long: without it a server that stalls would
    /// look quick.
    pub(super) fn failed(&mut self, fault: &Fault, waited: Duration) {
        if matches!(fault, Fault::TimedOut) {
            self.latency.saturating_record(nanoseconds(waited));
        }
        match self.errors.get_mut(fault.name()) {
            Some(count) => *count += 1,
            None => drop(self.errors.insert(fault.name().to_owned(), 1)),
        }
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Moves everything over there.
    pub(super) fn pour_into(&mut self, sum: &mut Self) {
        sum.latency.add(&self.latency).expect("all have the same bounds");
        self.latency.reset();
        sum.requests += std::mem::take(&mut self.requests);
        sum.ids += std::mem::take(&mut self.ids);
        for (name, count) in std::mem::take(&mut self.errors) {
            *sum.errors.entry(name).or_default() += count;
        }
        sum.behind = sum.behind.max(std::mem::take(&mut self.behind));
        sum.unsent += std::mem::take(&mut self.unsent);
    }

    /// The latency that a part of the requests did not exceed.
    pub(super) fn quantile(&self, part: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_quantile(part))
    }
}

pub(super) fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
