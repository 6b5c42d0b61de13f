//! A worker whose number is given by hand: `static:N`.

use std::time::Duration;

use frazil_coord::{Scheme, StoreUrl, Timing};
use frazil_id::Layout;

/// Nobody else takes a fixed worker, so its window (three times this) can be short, and so is the
/// wait when its file is missing.
const TTL_MIN: Duration = Duration::from_secs(1);
/// Three times this is the longest window there is.
const TTL_MAX: Duration = Duration::from_mins(20);

/// The number of a fixed worker, if the URL names one.
#[must_use]
pub fn fixed_worker(url: &StoreUrl) -> Option<u32> {
    match url.scheme {
        Scheme::Static => url.path.parse().ok(),
        _ => None,
    }
}

/// The durations of a fixed worker: short, but no shorter than a few ticks.
#[must_use]
pub fn fixed_timing(layout: &Layout) -> Timing {
    let tick = Duration::from_millis(layout.tick_ms().into());
    let ttl = TTL_MIN.max(tick * 2).min(TTL_MAX);
    Timing::DEFAULT.with_ttl(ttl).with_heartbeat(ttl * 3 / 10).with_outage_budget(ttl * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_three_seconds_or_six_ticks() {
        for (tick, window) in [("1ms", 3), ("1s", 6), ("10s", 60), ("1200s", 3600)] {
            let text = format!("time:32 worker:4 sequence:5 @1704067200000 tick:{tick}");
            let timing = fixed_timing(&text.parse().unwrap());
            assert_eq!(timing.outage_budget, Duration::from_secs(window), "{tick}");
            assert_eq!(timing.checked(), Ok(timing));
        }
    }
}
