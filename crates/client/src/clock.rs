//! The one door to the machine's clocks.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine started, suspension included: what ages are counted in.
pub(crate) fn boot_ns() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    read(CLOCK)
}

/// A number that changes every few milliseconds: the kernel's last tick. A fifth of the price of
/// [`boot_ns`], and enough to know that hardly any time has passed.
#[inline]
pub(crate) fn tick() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::MonotonicCoarse;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let now = clock_gettime(CLOCK);
    // Nanoseconds have 30 bits: all that is asked of a tick is that it differs from others.
    now.tv_sec.cast_unsigned() << 30 | now.tv_nsec.cast_unsigned()
}

/// The time of day, for what others say in it.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub(crate) fn unix() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// A duration in nanoseconds; what is longer than 584 years is that long.
pub(crate) fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
