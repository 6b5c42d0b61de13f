//! The one door to the machine's clocks.

mod kernel;
mod utc;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

pub use self::kernel::{KernelClock, kernel_clock};
pub(crate) use self::utc::Utc;
use crate::record::UnixMs;

/// Time since the machine started, suspension included: what deadlines are counted in.
#[must_use]
pub fn boot_time() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let now = clock_gettime(CLOCK);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

/// Real time since 1970 as the operating system has it; zero before.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

/// [`unix_time`] in milliseconds.
#[must_use]
pub fn unix_ms() -> UnixMs {
    millis(unix_time())
}

/// A duration in milliseconds.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A pause that doubles with every time, up to the longest one.
#[must_use]
pub fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(most)
}
