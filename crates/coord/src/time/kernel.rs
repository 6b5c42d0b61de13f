//! The kernel's judgement of its own clock, as a time daemon told it.

use std::time::Duration;

/// The kernel's word about its real-time clock. The kernel knows no better than the daemon that
/// disciplines it, and widens the bounds by itself while the daemon is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// Whether a daemon keeps the clock right.
    pub is_synchronized: bool,
    /// How much the kernel still has to add, in nanoseconds; negative if it has to take away.
    pub offset_ns: i64,
    /// How wrong the clock probably is.
    pub estimated_error: Duration,
    /// How wrong it is at the most.
    pub maximum_error: Duration,
}

/// Asks the kernel. `None` where it does not say: not on Linux, or in a sandbox that hides it.
#[cfg(target_os = "linux")]
#[must_use]
pub fn kernel_clock() -> Option<KernelClock> {
    use rtime_clock::adjtime::{Timex, adjtimex};

    /// The answer of a kernel whose clock nobody keeps right.
    const TIME_ERROR: i32 = 5;
    /// Of the status: nobody keeps the clock right.
    const STA_UNSYNC: i32 = 0x40;
    /// Of the status: the offset is in nanoseconds.
    const STA_NANO: i32 = 0x2000;

    // Without a mode nothing is set, so this takes no privilege.
    let mut asked = Timex::new();
    let state = adjtimex(&mut asked).ok()?;
    let said = asked.0;
    let unit_ns = if said.status & STA_NANO == 0 { 1000 } else { 1 };
    let micros = |error: i64| Duration::from_micros(u64::try_from(error).unwrap_or(0));
    // On some machines these are narrower than 64 bits.
    #[allow(clippy::useless_conversion, reason = "on others they are not")]
    let (offset, estimated, maximum) =
        (i64::from(said.offset), i64::from(said.esterror), i64::from(said.maxerror));
    Some(KernelClock {
        is_synchronized: state != TIME_ERROR && said.status & STA_UNSYNC == 0,
        offset_ns: offset.saturating_mul(unit_ns),
        estimated_error: micros(estimated),
        maximum_error: micros(maximum),
    })
}

/// Asks the kernel. `None` where it does not say: not on Linux, or in a sandbox that hides it.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn kernel_clock() -> Option<KernelClock> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_without_privileges_and_within_its_own_bounds() {
        let clock = kernel_clock().expect("Linux answers");
        // The kernel stops widening its bounds at 16 s, and then calls itself unsynchronised.
        assert!(clock.maximum_error <= Duration::from_secs(16), "{clock:?}");
        let at_its_end = clock.maximum_error == Duration::from_secs(16);
        assert!(!(clock.is_synchronized && at_its_end), "{clock:?}");
    }
}
