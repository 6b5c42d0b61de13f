//! The steps of real time: how often, and how far.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::look::Look;

/// What real time and boot time may part by between two looks without it being a step: clocks are
/// slewed by at most half a thousandth, and looks are seconds apart.
const STEP_MIN_US: i64 = 10_000;
/// Slewing moves real time by up to this much per second of boot time.
const SLEW_US_PER_SECOND: i64 = 500;

/// The steps that a clock made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Steps {
    /// How many were ahead.
    pub forward: u64,
    /// How many were back.
    pub back: u64,
    /// The last one in microseconds, negative if it was back.
    pub last_us: i64,
}

/// Counts them, whether or not they are believed: it compares each look with the one before, and not
/// with where real time should be.
#[derive(Debug)]
pub(super) struct StepCounter {
    /// Real time minus boot time at the last look, in microseconds.
    offset_us: AtomicI64,
    /// Boot time of the last look, in microseconds.
    looked_us: AtomicI64,
    forward: AtomicU64,
    back: AtomicU64,
    last_us: AtomicI64,
}

impl StepCounter {
    pub(super) fn new(look: Look) -> Self {
        Self {
            offset_us: AtomicI64::new(look.offset_us()),
            looked_us: AtomicI64::new(look.after_us),
            forward: AtomicU64::new(0),
            back: AtomicU64::new(0),
            last_us: AtomicI64::new(0),
        }
    }

    /// Takes in the next look; gives the step since the last one in microseconds, negative if it was
    /// back.
    pub(super) fn note(&self, look: Look) -> Option<i64> {
        if !look.is_narrow() {
            return None;
        }
        // Relaxed, here and below: counters, and a memory of the looker; nothing else hangs on them.
        let parted = look.offset_us() - self.offset_us.swap(look.offset_us(), Ordering::Relaxed);
        let elapsed_us = look.after_us - self.looked_us.swap(look.after_us, Ordering::Relaxed);
        let slewed = elapsed_us / 1_000_000 * SLEW_US_PER_SECOND;
        if parted.abs() < STEP_MIN_US + slewed {
            return None;
        }
        self.last_us.store(parted, Ordering::Relaxed);
        let counter = if parted > 0 { &self.forward } else { &self.back };
        counter.fetch_add(1, Ordering::Relaxed);
        Some(parted)
    }

    /// The steps noticed so far.
    pub(super) fn steps(&self) -> Steps {
        Steps {
            forward: self.forward.load(Ordering::Relaxed),
            back: self.back.load(Ordering::Relaxed),
            last_us: self.last_us.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    /// The steps after looks at (boot time, real time).
    fn steps(looks: &[(Duration, Duration)]) -> Steps {
        let looks: Vec<Look> =
            looks.iter().map(|&(boot, real)| Look::new(boot, real, boot)).collect();
        let counter = StepCounter::new(looks[0]);
        looks[1..].iter().for_each(|look| {
            counter.note(*look);
        });
        counter.steps()
    }

    #[test]
    fn a_change_of_the_offset_is_a_step_in_its_direction() {
        let ms = Duration::from_millis(1);
        let seen = steps(&[
            (SECOND, 2 * HOUR + SECOND),
            (2 * SECOND, HOUR + 2 * SECOND),
            (3 * SECOND, HOUR + 3 * SECOND + 20 * ms),
        ]);
        assert_eq!(seen, Steps { forward: 1, back: 1, last_us: 20_000 });
    }

    #[test]
    fn a_clock_that_is_slewed_makes_no_steps() {
        let slewed =
            (0..1000).map(|at| (at * SECOND, HOUR + at * Duration::from_micros(1_000_500)));
        assert_eq!(steps(&slewed.collect::<Vec<_>>()), Steps::default());
        assert_eq!(steps(&[(SECOND, HOUR), (101 * SECOND, HOUR + 100 * SECOND)]), Steps::default());
    }

    #[test]
    fn a_thread_that_was_held_up_within_its_look_saw_no_step() {
        let counter = StepCounter::new(Look::new(SECOND, HOUR, SECOND));
        assert_eq!(counter.note(Look::new(2 * SECOND, HOUR + SECOND, 3 * SECOND)), None);
        assert_eq!(counter.note(Look::new(4 * SECOND, HOUR + 3 * SECOND, 4 * SECOND)), None);
        assert_eq!(counter.steps(), Steps::default());
    }
}
