//! A clock that a test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use frazil_coord::internal::time::unix_time;

use crate::wall_clock::WallClock;

/// The machine's real time until a test sets it: it goes on from there. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct TestClock {
    /// How far it is ahead of the machine's.
    ahead_us: Arc<AtomicI64>,
}

impl TestClock {
    /// A clock that is right.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it ahead, as an operator or NTP would.
    pub fn step_ahead(&self, by: Duration) {
        // Relaxed, here and below: the word stands for itself.
        self.ahead_us.fetch_add(micros(by), Ordering::Relaxed);
    }

    /// Sets it back, as an operator or NTP would.
    pub fn step_back(&self, by: Duration) {
        self.ahead_us.fetch_sub(micros(by), Ordering::Relaxed);
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl WallClock for TestClock {
    fn unix_time(&self) -> Duration {
        let ahead_us = self.ahead_us.load(Ordering::Relaxed);
        let by = Duration::from_micros(ahead_us.unsigned_abs());
        if ahead_us < 0 { unix_time().saturating_sub(by) } else { unix_time().saturating_add(by) }
    }
}
