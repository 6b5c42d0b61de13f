//! One look at both clocks of the machine.

use std::time::Duration;

use frazil_coord::internal::time::boot_time;

/// Looks further apart say little about where real time is by boot time.
const NARROW_US: i64 = 10_000;

/// Real time between two looks at boot time, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) before_us: i64,
    pub(super) real_us: i64,
    pub(super) after_us: i64,
}

impl Look {
    pub(super) fn at(real: impl FnOnce() -> Duration) -> Self {
        let before = boot_time();
        let real = real();
        Self::new(before, real, boot_time())
    }

    pub(super) fn new(before: Duration, real: Duration, after: Duration) -> Self {
        Self { before_us: micros(before), real_us: micros(real), after_us: micros(after) }
    }

    /// Real time minus boot time.
    pub(super) const fn offset_us(self) -> i64 {
        self.real_us - self.after_us
    }

    /// Whether the thread was not held up meanwhile.
    pub(super) const fn is_narrow(self) -> bool {
        self.after_us - self.before_us <= NARROW_US
    }
}

#[inline]
pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}
