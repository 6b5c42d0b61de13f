//! The clocks of a measurement: the one door to them.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Now, by a clock that nobody sets.
#[expect(clippy::disallowed_methods, reason = "this measures")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// CPU time of this process.
pub(crate) fn cpu_of_process() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

/// CPU time of the thread that asks.
pub(crate) fn cpu_of_thread() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
