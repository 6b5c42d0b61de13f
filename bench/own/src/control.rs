//! What the machine allows, whatever the generator.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::case::Case;

/// IDs that the usual layout allows a tick.
const IDS_PER_TICK: u32 = 4096;
const TICK_NS: u32 = 1_000_000;

/// A thread that sleeps to each next millisecond and counts as if it had issued all the IDs of it.
///
/// A machine that wakes its threads a tick late takes that tick from everyone who sleeps, so this
/// is about the rate that a generator can reach which neither spins nor runs ahead of time.
#[must_use]
pub fn sleeper<'a>() -> Case<'a> {
    Case::with_state(
        "control: only sleeps to each tick",
        IDS_PER_TICK,
        || (),
        |()| {
            let since_epoch = real_time();
            let left_ns = TICK_NS - since_epoch.subsec_nanos() % TICK_NS;
            #[expect(clippy::disallowed_methods, reason = "the sleep itself is what is measured")]
            thread::sleep(Duration::from_nanos(left_ns.into()));
        },
    )
}

#[expect(clippy::disallowed_methods, reason = "a generator reads the same clock")]
fn real_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
