//! A clock that a test moves.

use core::time::Duration;

use super::{Clock, Reading, Timeline};
use crate::layout::Layout;
use crate::sync::{AtomicU64, Ordering};

/// A clock that moves only when told: [`advance`](Self::advance) lets time pass,
/// [`step_to`](Self::step_to) sets real time as an operator or NTP would.
#[derive(Debug)]
pub struct ManualClock {
    timeline: Timeline,
    epoch_ms: u64,
    tick_ms: u64,
    real_ms: AtomicU64,
    elapsed_ms: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at the start of a tick of the layout.
    #[must_use]
    pub fn new(layout: &Layout, tick: u64) -> Self {
        let clock = Self {
            timeline: Timeline::new(layout),
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms().into(),
            real_ms: AtomicU64::new(0),
            elapsed_ms: AtomicU64::new(0),
        };
        clock.step_to(tick);
        clock
    }

    /// Sets real time to the start of a tick; no time passes.
    pub fn step_to(&self, tick: u64) {
        self.step_to_unix_ms(self.epoch_ms.saturating_add(tick.saturating_mul(self.tick_ms)));
    }

    /// Sets real time; no time passes.
    pub fn step_to_unix_ms(&self, unix_ms: u64) {
        // Relaxed, here and below: each word stands for itself.
        self.real_ms.store(unix_ms, Ordering::Relaxed);
    }

    /// Lets that many ticks pass.
    pub fn advance(&self, ticks: u64) {
        let ms = ticks.saturating_mul(self.tick_ms);
        self.real_ms.fetch_add(ms, Ordering::Relaxed);
        self.elapsed_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn real(&self) -> Duration {
        Duration::from_millis(self.real_ms.load(Ordering::Relaxed))
    }
}

impl Clock for ManualClock {
    fn tick(&self) -> Option<u64> {
        self.timeline.tick(|| self.real())
    }

    fn read(&self) -> Reading {
        let elapsed = || Duration::from_millis(self.elapsed_ms.load(Ordering::Relaxed));
        self.timeline.observe(|| self.real(), elapsed)
    }
}
