//! The real-time clock of the operating system.

use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::{Clock, Reading, Timeline};
use crate::layout::Layout;

/// Reads the operating system's real-time clock on every call.
///
/// Elapsed time after a step back is measured by [`Instant`], which stops while the machine is
/// suspended.
#[derive(Debug)]
pub struct SystemClock {
    timeline: Timeline,
    started: Instant,
}

impl SystemClock {
    /// The system's clock in the ticks of a layout.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new(layout: &Layout) -> Self {
        Self { timeline: Timeline::new(layout), started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn tick(&self) -> Option<u64> {
        self.timeline.tick(real_time)
    }

    fn read(&self) -> Reading {
        self.timeline.observe(real_time, || self.started.elapsed())
    }
}

#[inline]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn real_time() -> Duration {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(real) => real,
        Err(_) => before_every_epoch(),
    }
}

/// Kept apart, so that the usual case is not computed through a choice of values.
#[cold]
#[inline(never)]
fn before_every_epoch() -> Duration {
    Duration::ZERO
}
