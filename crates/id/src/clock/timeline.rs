//! Turns real time into ticks and notices when it steps back.

use core::time::Duration;

use super::{Moment, Reading};
use crate::layout::Layout;
use crate::sync::{AtomicI64, AtomicU64, Ordering};

/// After a step back the steady line goes on at 7/8 of the speed of time, so that real time meets
/// it again after eight times the step and IDs become truthful again.
const STEADY_EIGHTHS: u64 = 7;
/// The steady line when real time never stepped back, or has met it again.
const NO_LINE: i64 = i64::MIN;

/// The memory of a clock: the highest tick it gave, and the steady line since real time stepped
/// back behind it. Every [`Clock`](super::Clock) that reads real time is a thin layer on this.
#[derive(Debug)]
pub struct Timeline {
    epoch_ms: u64,
    tick_ms: u64,
    highest: AtomicU64,
    /// Where the steady line stood when elapsed time was zero, in microseconds since the epoch:
    /// one word describes the whole line, so that threads never see half of it.
    line_us: AtomicI64,
}

impl Timeline {
    /// A timeline in the ticks of a layout.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self {
            epoch_ms: layout.epoch_ms(),
            tick_ms: u64::from(layout.tick_ms()),
            highest: AtomicU64::new(0),
            line_us: AtomicI64::new(NO_LINE),
        }
    }

    /// Reads real time, since the Unix epoch, and returns its tick if it is in order.
    #[inline]
    pub fn tick(&self, real: impl FnOnce() -> Duration) -> Option<u64> {
        let highest = self.highest();
        let since_epoch_ms = unix_ms(real())?.checked_sub(self.epoch_ms)?;
        // Nearly every layout has ticks of 1 ms, and a branch is cheaper than a division.
        let tick = if self.tick_ms == 1 { since_epoch_ms } else { since_epoch_ms / self.tick_ms };
        self.is_in_order(tick, highest).then_some(tick)
    }

    /// Reads real time, since the Unix epoch, and says all about it; `elapsed` is a clock that
    /// nobody sets, asked only after a step back.
    pub fn observe(
        &self,
        real: impl FnOnce() -> Duration,
        elapsed: impl FnOnce() -> Duration,
    ) -> Reading {
        let highest = self.highest();
        let real = real();
        let before_epoch = Duration::from_millis(self.epoch_ms).saturating_sub(real);
        // A clock that has been within the layout's time before did not start too early: it fell.
        if !before_epoch.is_zero() && highest == 0 {
            return Reading::BeforeEpoch { by: before_epoch };
        }
        let since_epoch_ms = unix_ms(real).unwrap_or(u64::MAX).saturating_sub(self.epoch_ms);
        let moment = self.moment(since_epoch_ms, real.subsec_nanos() % 1_000_000);
        // Relaxed: the line is one word and publishes nothing else.
        if self.is_in_order(moment.tick, highest) && self.line_us.load(Ordering::Relaxed) == NO_LINE
        {
            return Reading::At(moment);
        }
        let sub_ms_us = real.subsec_micros() % 1000;
        let real_us = since_epoch_ms.saturating_mul(1000).saturating_add(sub_ms_us.into());
        self.after_step(Fallen { real: moment, real_us, before_epoch, highest }, elapsed())
    }

    #[inline]
    fn highest(&self) -> u64 {
        // Acquire: real time must be read after this load, or another thread's later reading would
        // look like a step back.
        self.highest.load(Ordering::Acquire)
    }

    #[inline]
    fn is_in_order(&self, tick: u64, highest: u64) -> bool {
        if tick > highest {
            // Release: pairs with the load in `highest`.
            self.highest.fetch_max(tick, Ordering::Release);
        }
        tick >= highest
    }

    fn moment(&self, since_epoch_ms: u64, sub_ms_ns: u32) -> Moment {
        let left_ms = self.tick_ms - since_epoch_ms % self.tick_ms;
        let left_ns = left_ms * 1_000_000 - u64::from(sub_ms_ns);
        Moment { tick: since_epoch_ms / self.tick_ms, left: Duration::from_nanos(left_ns) }
    }

    #[cold]
    fn after_step(&self, fallen: Fallen, elapsed: Duration) -> Reading {
        let Fallen { real, real_us, before_epoch, highest } = fallen;
        let tick_us = self.tick_ms * 1000;
        let highest_us = highest.saturating_mul(tick_us);
        let slowed_us = signed(elapsed.as_micros().saturating_mul(STEADY_EIGHTHS.into()) / 8);
        // Relaxed, here and below: the line is one word and publishes nothing else.
        let mut line_us = self.line_us.load(Ordering::Relaxed);
        if line_us == NO_LINE {
            let fresh = signed(highest_us.into()).saturating_sub(slowed_us);
            let raced =
                self.line_us.compare_exchange(NO_LINE, fresh, Ordering::Relaxed, Ordering::Relaxed);
            line_us = raced.err().unwrap_or(fresh);
        }
        let steady_us = u64::try_from(line_us.saturating_add(slowed_us)).unwrap_or(0);
        let behind = Duration::from_micros(highest_us.saturating_sub(real_us));
        let behind = behind.saturating_add(before_epoch);
        if behind.is_zero() && real_us >= steady_us {
            let _ = self.line_us.compare_exchange(
                line_us,
                NO_LINE,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            return Reading::At(real);
        }
        let left_us = (tick_us - steady_us % tick_us) * 8 / STEADY_EIGHTHS + 1;
        let steady = Moment { tick: steady_us / tick_us, left: Duration::from_micros(left_us) };
        Reading::Stepped { real, behind, steady }
    }
}

/// Real time at or after a step back.
struct Fallen {
    real: Moment,
    /// Since the epoch.
    real_us: u64,
    /// How far before the epoch; real time counts as the epoch then.
    before_epoch: Duration,
    highest: u64,
}

/// `None` for times too far off for milliseconds.
#[inline]
fn unix_ms(real: Duration) -> Option<u64> {
    real.as_secs().checked_mul(1000)?.checked_add(real.subsec_millis().into())
}

fn signed(us: u128) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A timeline of 1 ms ticks from 1970, and what it says at (real, elapsed) milliseconds.
    struct Probe(Timeline);

    impl Probe {
        fn new() -> Self {
            Self(Timeline::new(&Layout::new(&[("time", 40), ("sequence", 4)], 0, 1).unwrap()))
        }

        fn at(&self, real_ms: u32, elapsed_ms: u32) -> Reading {
            self.0.observe(|| MS * real_ms, || MS * elapsed_ms)
        }
    }

    fn stepped(reading: Reading) -> (u64, Duration, u64) {
        match reading {
            Reading::Stepped { real, behind, steady } => (real.tick, behind, steady.tick),
            other => unreachable!("expected a step, got {other:?}"),
        }
    }

    #[test]
    fn a_step_back_is_measured_against_the_highest_tick_and_shrinks_as_time_passes() {
        let probe = Probe::new();
        assert_eq!(probe.at(1000, 0), Reading::At(Moment { tick: 1000, left: MS }));
        assert_eq!(stepped(probe.at(600, 0)), (600, MS * 400, 1000));
        assert_eq!(stepped(probe.at(900, 300)), (900, MS * 100, 1262));
        // Caught up with the highest reading, but not with the steady line.
        assert_eq!(stepped(probe.at(1000, 400)), (1000, Duration::ZERO, 1350));
    }

    #[test]
    fn real_time_meets_the_steady_line_after_eight_times_the_step() {
        let probe = Probe::new();
        probe.at(1000, 0);
        probe.at(900, 0);
        assert_eq!(stepped(probe.at(1699, 799)), (1699, Duration::ZERO, 1699));
        assert_eq!(probe.at(1700, 800), Reading::At(Moment { tick: 1700, left: MS }));
        assert_eq!(probe.at(1701, 801), Reading::At(Moment { tick: 1701, left: MS }));
    }

    #[test]
    fn a_second_step_during_the_first_keeps_the_line() {
        let probe = Probe::new();
        probe.at(1000, 0);
        assert_eq!(stepped(probe.at(900, 0)).2, 1000);
        assert_eq!(stepped(probe.at(500, 80)), (500, MS * 500, 1070));
    }

    #[test]
    fn a_forward_jump_ends_the_step() {
        let probe = Probe::new();
        probe.at(1000, 0);
        probe.at(900, 0);
        assert_eq!(probe.at(5000, 1), Reading::At(Moment { tick: 5000, left: MS }));
        assert_eq!(stepped(probe.at(4999, 2)), (4999, MS, 5000));
    }

    #[test]
    fn a_tick_longer_than_the_step_hides_it() {
        let layout = Layout::new(&[("time", 40), ("sequence", 4)], 0, 10).unwrap();
        let timeline = Timeline::new(&layout);
        let at = |ms| timeline.observe(|| MS * ms, || Duration::ZERO);
        assert_eq!(at(109), Reading::At(Moment { tick: 10, left: MS }));
        assert_eq!(at(101), Reading::At(Moment { tick: 10, left: MS * 9 }));
        assert!(matches!(at(99), Reading::Stepped { behind, .. } if behind == MS));
    }

    #[test]
    fn a_reading_says_the_tick_and_how_much_of_it_is_left() {
        for (tick_ms, real_us, tick, left_us) in
            [(1, 5_250, 5, 750), (10, 123_456, 12, 6_544), (10, 120_000, 12, 10_000)]
        {
            let layout = Layout::new(&[("time", 40), ("sequence", 4)], 0, tick_ms).unwrap();
            let timeline = Timeline::new(&layout);
            let real = || Duration::from_micros(real_us);
            let expected = Moment { tick, left: Duration::from_micros(left_us) };
            assert_eq!(timeline.observe(real, || Duration::ZERO), Reading::At(expected));
            assert_eq!(timeline.tick(real), Some(tick));
        }
    }

    #[test]
    fn the_steady_line_says_how_long_its_tick_lasts_at_its_speed() {
        let probe = Probe::new();
        probe.at(1000, 0);
        probe.at(900, 0);
        let elapsed = || Duration::from_micros(800);
        // 700 us into tick 1000: the other 300 us take 343 at 7/8 of the speed.
        let expected = Moment { tick: 1000, left: Duration::from_micros(343) };
        let reading = probe.0.observe(|| MS * 900, elapsed);
        assert!(matches!(reading, Reading::Stepped { steady, .. } if steady == expected));
    }

    #[test]
    fn a_fall_to_1970_is_a_step_back_like_any_other() {
        let timeline = Timeline::new(&Layout::FRAZIL);
        let epoch = Duration::from_millis(Layout::FRAZIL.epoch_ms());
        let at = |real, elapsed_ms| timeline.observe(|| real, || MS * elapsed_ms);
        at(epoch + MS * 1000, 0);
        assert_eq!(stepped(at(Duration::ZERO, 0)), (0, epoch + MS * 1000, 1000));
        assert_eq!(stepped(at(MS * 800, 800)), (0, epoch + MS * 200, 1700));
    }

    #[test]
    fn ticks_are_in_order_again_as_soon_as_real_time_has_caught_up() {
        let probe = Probe::new();
        let tick = |real_ms| probe.0.tick(|| MS * real_ms);
        assert_eq!((tick(1000), tick(999)), (Some(1000), None));
        probe.at(900, 0);
        // The steady line is still ahead.
        assert_eq!(stepped(probe.at(1000, 100)).2, 1087);
        assert_eq!((tick(999), tick(1000)), (None, Some(1000)));
    }

    #[test]
    fn time_before_the_epoch_is_said_and_absurd_times_do_not_wrap() {
        let timeline = Timeline::new(&Layout::FRAZIL);
        let epoch = Duration::from_millis(Layout::FRAZIL.epoch_ms());
        let at = |real| timeline.observe(|| real, || Duration::MAX);
        assert_eq!(at(epoch - MS / 2), Reading::BeforeEpoch { by: MS / 2 });
        assert_eq!(at(Duration::ZERO), Reading::BeforeEpoch { by: epoch });
        assert_eq!(at(epoch), Reading::At(Moment { tick: 0, left: MS }));
        assert!(matches!(at(Duration::MAX), Reading::At(Moment { tick, .. }) if tick > 1 << 60));
        assert!(matches!(at(epoch), Reading::Stepped { .. }));
    }
}
