//! Whether an endpoint is worth asking: after failures it rests, for longer each time, and is then
//! probed by one request before all come back.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::nanos;

/// The longest rest that a server can ask for: what is asked for by mistake must not last for ever.
const ASKED_FOR_MAX: Duration = Duration::from_secs(60);

/// What is known of an endpoint's health. All of it is a hint: a race costs a request or a pause.
#[derive(Debug, Default)]
pub struct Health {
    failures: AtomicU32,
    rests_until_ns: AtomicU64,
}

/// Whether an endpoint may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It may.
    Ready,
    /// It has rested, and nobody else is probing it.
    ProbeDue,
    /// It rests until then.
    BackingOff(u64),
}

impl Health {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { failures: AtomicU32::new(0), rests_until_ns: AtomicU64::new(0) }
    }

    /// Whether it may be asked, at a time of the boot clock in nanoseconds.
    #[must_use]
    pub fn readiness(&self, now_ns: u64) -> Readiness {
        // Relaxed, here and below: hints, see above.
        let until = self.rests_until_ns.load(Ordering::Relaxed);
        match self.failures.load(Ordering::Relaxed) {
            _ if now_ns < until => Readiness::BackingOff(until),
            0 => Readiness::Ready,
            _ => Readiness::ProbeDue,
        }
    }

    /// Takes the probe: until it is answered, or a pause has passed, others find it resting.
    pub(crate) fn begin_probe(&self, now_ns: u64, backoff: &RangeInclusive<Duration>) -> bool {
        let until = self.rests_until_ns.load(Ordering::Relaxed);
        let next = now_ns.saturating_add(nanos(*backoff.end()));
        now_ns >= until
            && self
                .rests_until_ns
                .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// It answered.
    pub fn succeeded(&self) {
        if self.failures.swap(0, Ordering::Relaxed) > 0 {
            self.rests_until_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Lets it rest: for as long as it asked for, within reason, or else for a time that doubles with every
    /// failure. `chance` is from 0 to 1 and spreads clients that failed together.
    pub fn failed(
        &self,
        now_ns: u64,
        asked_for: Option<Duration>,
        backoff: &RangeInclusive<Duration>,
        chance: f64,
    ) {
        let before = self.failures.fetch_add(1, Ordering::Relaxed).min(20);
        let longest = nanos(*backoff.end());
        let doubled = nanos(*backoff.start()).saturating_mul(1 << before).min(longest);
        let pause = match asked_for {
            Some(asked_for) => nanos(asked_for.min(ASKED_FOR_MAX)),
            None => doubled / 2 + scaled(doubled / 2, chance),
        };
        self.rests_until_ns.store(now_ns.saturating_add(pause), Ordering::Relaxed);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a fraction of a pause, whose last digits do not matter"
)]
fn scaled(pause_ns: u64, chance: f64) -> u64 {
    (pause_ns as f64 * chance.clamp(0.0, 1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn backoff() -> RangeInclusive<Duration> {
        Duration::from_millis(10)..=Duration::from_millis(1000)
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_are_spread() {
        let health = Health::new();
        for expected in [10, 20, 40, 80, 160, 320, 640, 1000, 1000] {
            health.failed(0, None, &backoff(), 1.0);
            assert_eq!(health.readiness(0), Readiness::BackingOff(expected * MS));
        }
        let (early, late) = (Health::new(), Health::new());
        early.failed(0, None, &backoff(), 0.0);
        late.failed(0, None, &backoff(), 1.0);
        assert_ne!(early.readiness(0), late.readiness(0));
    }

    #[test]
    fn one_request_probes_and_its_answer_decides() {
        let health = Health::new();
        assert_eq!(health.readiness(5), Readiness::Ready);
        health.failed(0, None, &backoff(), 1.0);
        assert_eq!(health.readiness(11 * MS), Readiness::ProbeDue);
        assert!(health.begin_probe(11 * MS, &backoff()));
        assert!(!health.begin_probe(11 * MS, &backoff()), "one is enough");
        assert!(matches!(health.readiness(12 * MS), Readiness::BackingOff(_)));
        health.succeeded();
        assert_eq!(health.readiness(12 * MS), Readiness::Ready);
    }

    #[test]
    fn what_the_server_asks_for_is_honoured() {
        let health = Health::new();
        health.failed(0, Some(Duration::from_secs(7)), &backoff(), 0.5);
        assert_eq!(health.readiness(1), Readiness::BackingOff(7_000 * MS));
        health.failed(0, Some(Duration::MAX), &backoff(), 0.5);
        assert_eq!(health.readiness(1), Readiness::BackingOff(60_000 * MS), "but not for ever");
    }
}
