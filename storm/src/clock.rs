//! Time: the one place of this crate that reads clocks and waits.
//!
//! Everything that storm starts runs on one machine, so one monotonic clock orders all events.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Since storm began.
#[expect(clippy::disallowed_methods, reason = "what is tested are real processes in real time")]
pub(crate) fn now() -> Duration {
    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    BEGINNING.get_or_init(Instant::now).elapsed()
}

/// The machine's own clock, which no fault touches.
pub(crate) fn unix_ms() -> i64 {
    i64::try_from(unix().as_millis()).unwrap_or(i64::MAX)
}

/// Since 1970, for what several processes say of one time.
#[expect(clippy::disallowed_methods, reason = "the truth that the times in IDs are compared with")]
pub(crate) fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A moment of this run as time since 1970.
pub(crate) fn unix_at(moment: Duration) -> Duration {
    let unix_now = Duration::from_millis(unix_ms().unsigned_abs());
    unix_now.saturating_sub(now().saturating_sub(moment))
}

/// Lets time pass: the length of a fault, or the pace of a load.
#[expect(clippy::disallowed_methods, reason = "a fault has a length")]
pub(crate) fn rest(time: Duration) {
    std::thread::sleep(time);
}
