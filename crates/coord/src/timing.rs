//! The durations of a lease, and how they must relate.

use std::fmt;
use std::time::Duration;

use crate::rules::{RUN_AHEAD_MS, WINDOW_MAX_MS};

/// How long things last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Presence without renewal: after this a slot can be taken over.
    pub ttl: Duration,
    /// Between two renewals.
    pub heartbeat: Duration,
    /// The longest time without the store that a holder is to survive.
    pub outage_budget: Duration,
}

/// Durations that do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimingError {
    /// A lost renewal or two must not cost the lease.
    HeartbeatTooLong(Timing),
    /// Nothing happens in no time.
    TooShort(Timing),
    /// A holder survives the store for some TTLs at least.
    BudgetTooShort(Timing),
    /// A slot must not be blocked for longer after a crash.
    BudgetTooLong(Timing),
}

/// Below this, scheduling delays alone cost leases, and a new tenure whose floor is ahead of now could
/// have a horizon that is no higher: nothing to use.
const TTL_MIN: Duration = Duration::from_secs(1);
/// An outage budget is at least this many TTLs.
const BUDGET_TTLS: u32 = 3;

impl Default for Timing {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Timing {
    /// A TTL of 30 s, renewed every 10 s; an outage of the store is survived for 10 min.
    pub const DEFAULT: Self = Self {
        ttl: Duration::from_secs(30),
        heartbeat: Duration::from_secs(10),
        outage_budget: Duration::from_mins(10),
    };

    /// These, with another TTL. The heartbeat and the budget stay what they are.
    #[must_use]
    pub const fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// These, with another heartbeat.
    #[must_use]
    pub const fn with_heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// These, with another outage budget.
    #[must_use]
    pub const fn with_outage_budget(mut self, outage_budget: Duration) -> Self {
        self.outage_budget = outage_budget;
        self
    }

    /// Checks the relations.
    ///
    /// # Errors
    /// The one that does not hold.
    pub fn checked(self) -> Result<Self, TimingError> {
        if self.ttl > Duration::from_millis(WINDOW_MAX_MS) {
            Err(TimingError::BudgetTooLong(self))
        } else if self.ttl < TTL_MIN || self.heartbeat.is_zero() {
            Err(TimingError::TooShort(self))
        } else if self.heartbeat > self.ttl / 3 {
            Err(TimingError::HeartbeatTooLong(self))
        } else if self.outage_budget < self.ttl * BUDGET_TTLS {
            Err(TimingError::BudgetTooShort(self))
        } else if self.outage_budget > Duration::from_millis(WINDOW_MAX_MS) {
            Err(TimingError::BudgetTooLong(self))
        } else {
            Ok(self)
        }
    }

    /// The window of a tenure of an age: as long as it has lived, so that a crash loop blocks no
    /// more of the pool than it was up. At first it is a TTL beyond the furthest floor that is taken.
    #[must_use]
    pub fn window(&self, age: Duration) -> Duration {
        // Not `clamp`: a timing that nobody has checked may be shorter than that.
        age.max(self.ttl + Duration::from_millis(RUN_AHEAD_MS)).min(self.outage_budget)
    }
}

impl fmt::Display for TimingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeartbeatTooLong(timing) => write!(
                f,
                "a heartbeat of {:?} is more than a third of the TTL of {:?}",
                timing.heartbeat, timing.ttl
            ),
            Self::TooShort(timing) => write!(
                f,
                "a TTL of {:?} with a heartbeat of {:?} is too short: the least TTL is {TTL_MIN:?}",
                timing.ttl, timing.heartbeat
            ),
            Self::BudgetTooShort(timing) => write!(
                f,
                "an outage budget of {:?} is less than {BUDGET_TTLS} times the TTL of {:?}",
                timing.outage_budget, timing.ttl
            ),
            Self::BudgetTooLong(timing) => write!(
                f,
                "an outage budget of {:?} is more than {:?}: a crash would block a worker for as \
                 long",
                timing.outage_budget,
                Duration::from_millis(WINDOW_MAX_MS)
            ),
        }
    }
}

impl std::error::Error for TimingError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_go_together() {
        assert_eq!(Timing::default().checked(), Ok(Timing::default()));
    }

    #[test]
    fn every_relation_can_fail() {
        let base = Timing::default();
        let heartbeat = Timing { heartbeat: Duration::from_secs(11), ..base };
        assert_eq!(heartbeat.checked(), Err(TimingError::HeartbeatTooLong(heartbeat)));
        let short = Timing { ttl: Duration::from_millis(999), ..base };
        assert_eq!(short.checked(), Err(TimingError::TooShort(short)));
        let budget = Timing { outage_budget: Duration::from_secs(89), ..base };
        assert_eq!(budget.checked(), Err(TimingError::BudgetTooShort(budget)));
        let budget = Timing { outage_budget: Duration::from_secs(3601), ..base };
        assert_eq!(budget.checked(), Err(TimingError::BudgetTooLong(budget)));
    }

    #[test]
    fn the_first_grant_has_times_to_use_however_far_ahead_its_floor_is() {
        let second = Duration::from_secs(1);
        let shortest = Timing { ttl: second, heartbeat: second / 3, outage_budget: 3 * second };
        assert_eq!(shortest.checked(), Ok(shortest));
        let furthest = Duration::from_millis(RUN_AHEAD_MS);
        assert!(shortest.window(Duration::ZERO) > furthest);
    }

    #[test]
    fn the_window_grows_with_the_tenure() {
        let timing = Timing::default();
        for (age, window) in [(0, 32), (32, 32), (200, 200), (600, 600), (9000, 600)] {
            let window = Duration::from_secs(window);
            assert_eq!(timing.window(Duration::from_secs(age)), window);
        }
    }
}
