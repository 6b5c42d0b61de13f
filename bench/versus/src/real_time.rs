//! Real time, read on every call.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ferroid::time::TimeSource;

/// An exact clock for ferroid, which brings only a ticker.
pub(crate) struct RealTime {
    pub(crate) epoch_ms: u64,
}

impl TimeSource<u64> for RealTime {
    fn current_millis(&self) -> u64 {
        unix_ms(real_time()) - self.epoch_ms
    }
}

/// Computed without a 128-bit division, as the contender beside it does.
fn unix_ms(real: Duration) -> u64 {
    real.as_secs() * 1000 + u64::from(real.subsec_millis())
}

pub(crate) fn now_unix_ms() -> u64 {
    unix_ms(real_time())
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that is compared")]
fn real_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
