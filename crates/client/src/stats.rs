//! Numbers of a client.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::clock::nanos;
use crate::error::Error;
use crate::observer::Event;

/// What a client has done since it was made, or since the process was forked. Written by serde, times
/// are seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// IDs that came from the pool without waiting.
    pub hits: u64,
    /// Calls of `next` that waited for the network, whether they got an ID or not.
    pub waits: u64,
    /// Buffers that were put into the pool.
    pub refills: u64,
    /// IDs that were fetched and never handed out: too old, or wanted by nobody.
    pub discarded: u64,
    /// IDs that wait in the pool now.
    pub pooled: u64,
    /// Servers that are asked now: those that were given, and those that were discovered.
    pub endpoints: u64,
    /// Discovered servers that were added.
    pub joined: u64,
    /// Discovered servers that were dropped.
    pub left: u64,
    /// Requests: each is made at an endpoint once, and again if it fails.
    pub requests: u64,
    /// Attempts of all requests that were answered or failed.
    pub attempts: u64,
    /// Attempts that were not the first of their request. Never more than requests, but for the
    /// first request of all, which may ask every endpoint once.
    pub retries: u64,
    /// Retries at another endpoint than before.
    pub failovers: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Answers that were to another request.
    pub replays: u64,
    /// The time that attempts took which were answered as asked.
    #[serde(rename = "latency_total_seconds", serialize_with = "seconds")]
    pub latency_total: Duration,
    /// The longest of them.
    #[serde(rename = "latency_max_seconds", serialize_with = "seconds")]
    pub latency_max: Duration,
}

impl Stats {
    /// The mean time of an attempt that was answered as asked.
    #[must_use]
    pub fn latency_mean(&self) -> Duration {
        let answered = self.attempts.saturating_sub(self.failures).max(1);
        self.latency_total / u32::try_from(answered).unwrap_or(u32::MAX)
    }
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// The same while it is counted. Relaxed throughout: counters, read by statistics alone.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: Counter,
    waits: Counter,
    refills: Counter,
    joined: Counter,
    left: Counter,
    discarded: Counter,
    attempts: Counter,
    retries: Counter,
    failovers: Counter,
    failures: Counter,
    replays: Counter,
    latency_ns: Counter,
    latency_max_ns: AtomicU64,
}

/// A number that grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn one(&self) {
        self.add(1);
    }

    fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Counts what the observer is told of. Requests and hits alone are counted without an event.
    pub(crate) fn count(&self, event: &Event<'_>) {
        match event {
            Event::Answered { latency, .. } => {
                self.attempts.one();
                self.latency_ns.add(nanos(*latency));
                self.latency_max_ns.fetch_max(nanos(*latency), Ordering::Relaxed);
            }
            Event::Failed { error, .. } => {
                self.attempts.one();
                self.failures.one();
                self.replays.add(u64::from(matches!(error, Error::Replayed { .. })));
            }
            Event::Retried { is_failover, .. } => {
                self.retries.one();
                self.failovers.add(u64::from(*is_failover));
            }
            Event::Refilled { .. } => self.refills.one(),
            Event::Discarded { ids } => self.discarded.add(*ids),
            Event::Waited { .. } => self.waits.one(),
            Event::Joined { .. } => self.joined.one(),
            Event::Left { .. } => self.left.one(),
        }
    }

    /// All but what the pool knows.
    pub(crate) fn snapshot(&self) -> Stats {
        Stats {
            waits: self.waits.get(),
            refills: self.refills.get(),
            discarded: self.discarded.get(),
            joined: self.joined.get(),
            left: self.left.get(),
            requests: self.requests.get(),
            attempts: self.attempts.get(),
            retries: self.retries.get(),
            failovers: self.failovers.get(),
            failures: self.failures.get(),
            replays: self.replays.get(),
            latency_total: Duration::from_nanos(self.latency_ns.get()),
            latency_max: Duration::from_nanos(self.latency_max_ns.load(Ordering::Relaxed)),
            ..Stats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_written_with_times_in_seconds() {
        let stats = Stats { hits: 7, latency_max: Duration::from_millis(1500), ..Stats::default() };
        let written = serde_json::to_value(stats).unwrap();
        assert_eq!((&written["hits"], &written["latency_max_seconds"]), (&7.into(), &1.5.into()));
        assert_eq!(written.as_object().unwrap().len(), 16);
    }
}
