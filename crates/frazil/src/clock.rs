//! Real time for a node: what elapses is counted through suspension, and steps are noticed.

mod belief;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use frazil_coord::time::{boot_time, unix_time};
use frazil_id::{Clock, Layout, Reading, Timeline};

use belief::{Belief, Look};

/// What real time and boot time may part by between two looks without it being a step: clocks are
/// slewed by at most half a thousandth, and looks are seconds apart.
const STEP_MIN_US: i64 = 10_000;
/// Slewing moves real time by up to this much per second of boot time.
const SLEW_US_PER_SECOND: i64 = 500;

/// The system's real time beside the time since boot.
///
/// It never goes back by itself: after a step back it tells how far behind real time is and where
/// it would be had it gone on, counted in boot time, and lets real time catch up with that line.
/// A step ahead by more than two seconds is followed once it has lasted for a minute: until then time
/// goes on from where it was, so that a clock that jumps ahead and comes back is not felt. Each step
/// is counted.
#[derive(Debug)]
pub struct DisciplinedClock {
    timeline: Timeline,
    belief: Belief,
    started: Duration,
    /// Real time minus boot time at the last look, in microseconds.
    offset_us: AtomicI64,
    /// Boot time of the last look, in microseconds.
    looked_us: AtomicI64,
    forward: AtomicU64,
    back: AtomicU64,
    last_us: AtomicI64,
}

/// The steps that a clock made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// How many were ahead.
    pub forward: u64,
    /// How many were back.
    pub back: u64,
    /// The last one in microseconds, negative if it was back.
    pub last_us: i64,
}

impl DisciplinedClock {
    /// A clock in the ticks of a layout.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let clock = Self {
            timeline: Timeline::new(layout),
            belief: Belief::new(look()),
            started: boot_time(),
            offset_us: AtomicI64::new(0),
            looked_us: AtomicI64::new(0),
            forward: AtomicU64::new(0),
            back: AtomicU64::new(0),
            last_us: AtomicI64::new(0),
        };
        let (offset, boot) = offset();
        // Relaxed, here and below: counters and a memory of one looker; nothing else hangs on them.
        clock.offset_us.store(offset, Ordering::Relaxed);
        clock.looked_us.store(boot, Ordering::Relaxed);
        clock
    }

    /// Looks whether real time stepped since the last look. For one looker, every few seconds.
    pub fn look(&self) {
        // Also when nobody issues: a jump must be seen to end.
        self.belief.judge(look());
        let (offset, boot) = offset();
        let before = self.offset_us.swap(offset, Ordering::Relaxed);
        let elapsed_us = boot - self.looked_us.swap(boot, Ordering::Relaxed);
        let parted = offset - before;
        let slewed = elapsed_us / 1_000_000 * SLEW_US_PER_SECOND;
        if parted.abs() < STEP_MIN_US + slewed {
            return;
        }
        self.last_us.store(parted, Ordering::Relaxed);
        let counter = if parted > 0 { &self.forward } else { &self.back };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The steps noticed so far.
    #[must_use]
    pub fn steps(&self) -> Steps {
        Steps {
            forward: self.forward.load(Ordering::Relaxed),
            back: self.back.load(Ordering::Relaxed),
            last_us: self.last_us.load(Ordering::Relaxed),
        }
    }
}

fn look() -> Look {
    let boot_before = boot_time();
    let real = unix_time();
    Look { boot_before, real, boot_after: boot_time() }
}

/// Real time minus boot time, and boot time, in microseconds.
fn offset() -> (i64, i64) {
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let boot = micros(boot_time());
    (micros(unix_time()) - boot, boot)
}

impl Clock for DisciplinedClock {
    #[inline]
    fn tick(&self) -> Option<u64> {
        let mut is_believed = false;
        let tick = self.timeline.tick(|| {
            let real = unix_time();
            is_believed = self.belief.covers(real);
            // What is not believed yet must not raise the highest tick.
            if is_believed { real } else { Duration::ZERO }
        });
        // `read` then says what to go by.
        tick.filter(|_| is_believed)
    }

    fn read(&self) -> Reading {
        let elapsed = || boot_time().saturating_sub(self.started);
        self.timeline.observe(|| self.belief.judge(look()), elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_time_is_no_step() {
        let clock = DisciplinedClock::new(&Layout::FRAZIL);
        for _ in 0..1000 {
            clock.look();
        }
        assert_eq!(clock.steps(), Steps::default());
    }

    #[test]
    fn a_change_of_the_offset_is_a_step_in_its_direction() {
        let clock = DisciplinedClock::new(&Layout::FRAZIL);
        let hour_us = 3_600_000_000;
        // As if real time had been an hour later at the last look: it stepped back since.
        clock.offset_us.fetch_add(hour_us, Ordering::Relaxed);
        clock.look();
        clock.offset_us.fetch_sub(20_000, Ordering::Relaxed);
        clock.look();
        let steps = clock.steps();
        assert_eq!((steps.forward, steps.back), (1, 1));
        assert!((15_000..25_000).contains(&steps.last_us), "{steps:?}");
    }

    #[test]
    fn it_tells_the_time() {
        let clock = DisciplinedClock::new(&Layout::FRAZIL);
        let tick = clock.tick().expect("real time is in order");
        let unix_ms = frazil_coord::time::unix_ms();
        assert!(Layout::FRAZIL.unix_ms(tick).abs_diff(unix_ms) < 60_000);
    }
}
