//! The servers' clock. They tell it with what is written; in between this machine's boot time goes
//! on from there.

use std::sync::Mutex;
use std::time::Duration;

use crate::record::UnixMs;
use crate::sync::lock;
use crate::time::millis;

/// How long the boot time goes on from what was told. The servers' clock may be set right in the
/// meantime, and whoever is refused because of it writes nothing that would tell.
const AGE_MAX: Duration = Duration::from_secs(60);

/// The time that was told last, with the boot time at which the answer came.
#[derive(Debug, Default)]
pub(super) struct Clock(Mutex<Option<(UnixMs, Duration)>>);

impl Clock {
    /// Sets it by the time of a write that was answered at a boot time.
    pub(super) fn set(&self, told: UnixMs, answered: Duration) {
        *lock(&self.0) = Some((told, answered));
    }

    /// What it shows at a boot time; `None` if nothing was written yet.
    pub(super) fn at(&self, now: Duration) -> Option<UnixMs> {
        let (told, answered) = (*lock(&self.0))?;
        Some(told.saturating_add(millis(now.saturating_sub(answered))))
    }

    /// Whether something must be written to know it at a boot time.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        lock(&self.0).is_none_or(|(_, answered)| now.saturating_sub(answered) > AGE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_with_the_boot_time_and_is_asked_again_after_a_minute() {
        let (clock, second) = (Clock::default(), Duration::from_secs);
        assert!(clock.is_due(second(5)) && clock.at(second(5)).is_none());
        clock.set(1_000_000, second(10));
        assert_eq!(clock.at(second(12)), Some(1_002_000));
        assert!(!clock.is_due(second(70)));
        assert!(clock.is_due(second(71)));
        // What was told last counts, also if it is less.
        clock.set(900_000, second(71));
        assert_eq!(clock.at(second(72)), Some(901_000));
    }
}
