//! How far real time is believed: not at once when it jumps ahead.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Real time this far from where it should be by the time since boot has jumped: no clock is slewed
/// that fast, and nodes whose clocks are further apart do not trust each other.
const JUMP_US: i64 = 2_000_000;
/// A jump that has lasted this long is the truth.
const LASTED_US: i64 = 60_000_000;
/// Looks further apart say little about where real time is by boot time.
const NARROW_US: i64 = 10_000;
/// Real time is where it should be.
const TOGETHER: i64 = i64::MIN;

/// Where real time should be, by the time since boot.
///
/// A clock that jumps an hour ahead and comes back would otherwise leave the node with Ids from the
/// future, and then with a clock that seems to have stepped back by an hour. So a jump ahead is
/// believed once it has lasted; until then time goes on from where it was.
#[derive(Debug)]
pub(super) struct Belief {
    /// Real time minus boot time, in microseconds.
    offset_us: AtomicI64,
    /// Boot time since when real time is elsewhere, in microseconds.
    apart_since_us: AtomicI64,
    /// Real time minus boot time there.
    apart_offset_us: AtomicI64,
    /// Real time up to this is believed without a look at boot time, in microseconds.
    until_us: AtomicI64,
}

/// Real time between two looks at boot time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) boot_before: Duration,
    pub(super) real: Duration,
    pub(super) boot_after: Duration,
}

impl Belief {
    /// Believes what real time is now.
    pub(super) fn new(look: Look) -> Self {
        let belief = Self {
            offset_us: AtomicI64::new(micros(look.real) - micros(look.boot_after)),
            apart_since_us: AtomicI64::new(TOGETHER),
            apart_offset_us: AtomicI64::new(0),
            until_us: AtomicI64::new(0),
        };
        belief.judge(look);
        belief
    }

    /// Whether this is surely no jump ahead.
    #[inline]
    pub(super) fn covers(&self, real: Duration) -> bool {
        // Relaxed, here and below: each word stands for itself. Threads that look at the same time
        // may overwrite each other's view with one that is as recent.
        micros(real) <= self.until_us.load(Ordering::Relaxed)
    }

    /// The time to go by.
    pub(super) fn judge(&self, look: Look) -> Duration {
        let [before, real, after] = [look.boot_before, look.real, look.boot_after].map(micros);
        let offset = self.offset_us.load(Ordering::Relaxed);
        // A thread that was held up between its looks must not see a jump.
        let is_ahead = real > offset + after + JUMP_US;
        let is_behind = real < offset + before - JUMP_US;
        if (is_ahead || is_behind) && !self.has_lasted(before, real - after) {
            let by = if is_ahead { offset + after } else { real };
            // No further: the end of the jump must be seen too, or two short ones seem one long.
            self.until_us.store(by, Ordering::Relaxed);
            return Duration::from_micros(by.max(0).cast_unsigned());
        }
        self.apart_since_us.store(TOGETHER, Ordering::Relaxed);
        if after - before <= NARROW_US {
            self.offset_us.store(real - after, Ordering::Relaxed);
        }
        self.until_us.store(real + JUMP_US, Ordering::Relaxed);
        look.real
    }

    /// Whether real time has been in that other place for long; notes when that began.
    fn has_lasted(&self, boot_us: i64, offset_us: i64) -> bool {
        let began = self.apart_since_us.load(Ordering::Relaxed);
        let moved = offset_us - self.apart_offset_us.load(Ordering::Relaxed);
        if began == TOGETHER || moved.abs() > JUMP_US {
            self.apart_since_us.store(boot_us, Ordering::Relaxed);
            self.apart_offset_us.store(offset_us, Ordering::Relaxed);
            return false;
        }
        boot_us - began >= LASTED_US
    }
}

#[inline]
fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);
    /// Real time when the machine was booted.
    const BOOTED: Duration = Duration::from_secs(1_800_000_000);

    /// Real time that is right `boot` after the boot, and then off by so much.
    fn look(boot: Duration, ahead: Duration, behind: Duration) -> Look {
        Look { boot_before: boot, real: BOOTED + boot + ahead - behind, boot_after: boot }
    }

    fn right(boot: Duration) -> Look {
        look(boot, Duration::ZERO, Duration::ZERO)
    }

    #[test]
    fn a_jump_ahead_is_not_followed_and_its_end_is_no_step_back() {
        let belief = Belief::new(right(SECOND));
        assert_eq!(belief.judge(look(2 * SECOND, HOUR, Duration::ZERO)), BOOTED + 2 * SECOND);
        assert_eq!(belief.judge(look(9 * SECOND, HOUR, Duration::ZERO)), BOOTED + 9 * SECOND);
        assert_eq!(belief.judge(right(10 * SECOND)), BOOTED + 10 * SECOND);
    }

    #[test]
    fn a_jump_ahead_that_lasts_is_the_truth() {
        let belief = Belief::new(right(SECOND));
        let jumped = |at: u32| look(at * SECOND, HOUR, Duration::ZERO);
        assert_eq!(belief.judge(jumped(2)), BOOTED + 2 * SECOND);
        assert_eq!(belief.judge(jumped(61)), BOOTED + 61 * SECOND);
        assert_eq!(belief.judge(jumped(62)), BOOTED + 62 * SECOND + HOUR);
        assert_eq!(belief.judge(jumped(63)), BOOTED + 63 * SECOND + HOUR);
    }

    #[test]
    fn jumps_that_come_and_go_never_add_up_to_one_that_lasts() {
        let belief = Belief::new(right(SECOND));
        for at in 1..200 {
            let jumped = belief.judge(look(2 * at * SECOND, HOUR, Duration::ZERO));
            assert_eq!(jumped, BOOTED + 2 * at * SECOND);
            belief.judge(right((2 * at + 1) * SECOND));
        }
    }

    #[test]
    fn a_jump_to_yet_another_time_has_to_last_by_itself() {
        let belief = Belief::new(right(SECOND));
        belief.judge(look(2 * SECOND, Duration::ZERO, HOUR));
        belief.judge(look(61 * SECOND, Duration::ZERO, HOUR));
        assert_eq!(belief.judge(look(63 * SECOND, HOUR, Duration::ZERO)), BOOTED + 63 * SECOND);
        let further = belief.judge(look(124 * SECOND, 10 * HOUR, Duration::ZERO));
        assert_eq!(further, BOOTED + 124 * SECOND);
    }

    #[test]
    fn the_end_of_a_jump_is_looked_at() {
        let belief = Belief::new(right(SECOND));
        belief.judge(look(2 * SECOND, HOUR, Duration::ZERO));
        assert!(!belief.covers(BOOTED + 2 * SECOND + Duration::from_millis(1)));
    }

    #[test]
    fn a_step_back_is_seen_at_once_and_its_end_is_believed_at_once() {
        let belief = Belief::new(right(SECOND));
        let back = belief.judge(look(2 * SECOND, Duration::ZERO, HOUR));
        assert_eq!(back, BOOTED + 2 * SECOND - HOUR);
        assert_eq!(belief.judge(right(3 * SECOND)), BOOTED + 3 * SECOND);
    }

    #[test]
    fn a_clock_that_is_slewed_is_followed() {
        let belief = Belief::new(right(SECOND));
        let mut ahead = Duration::ZERO;
        for at in 2..2000 {
            ahead += Duration::from_micros(500);
            let looked = look(at * SECOND, ahead, Duration::ZERO);
            assert_eq!(belief.judge(looked), looked.real);
        }
    }

    #[test]
    fn a_thread_that_was_held_up_between_its_looks_sees_no_jump() {
        let belief = Belief::new(right(SECOND));
        for (boot_before, real, boot_after) in [(2, 12, 12), (12, 12, 22), (22, 27, 32)] {
            let real = BOOTED + real * SECOND;
            let looked =
                Look { boot_before: boot_before * SECOND, real, boot_after: boot_after * SECOND };
            assert_eq!(belief.judge(looked), real);
        }
    }

    #[test]
    fn what_is_not_far_ahead_needs_no_look_at_boot_time() {
        let belief = Belief::new(right(SECOND));
        assert!(belief.covers(BOOTED + 2 * SECOND));
        assert!(!belief.covers(BOOTED + 4 * SECOND));
        belief.judge(right(4 * SECOND));
        assert!(belief.covers(BOOTED + 5 * SECOND));
        belief.judge(look(5 * SECOND, HOUR, Duration::ZERO));
        assert!(!belief.covers(BOOTED + HOUR));
    }
}
