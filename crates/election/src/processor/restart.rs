//! The restart of a job that ended by itself: pure.

use std::time::Duration;

use frazil_coord::internal::time::doubled;

/// What follows when a job fails: it returned an error, or panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// It is started again here, under the same leadership, this many times in a row.
    pub tries: u32,
    /// The pause before the first of them; each further one is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// After the last of them the job is released, and this node leaves it to others for so long.
    /// Each further time in a row it is twice as long, up to `hold_off_max`.
    pub hold_off: Duration,
    /// The longest time that it is left to others.
    pub hold_off_max: Duration,
    /// A run that lasted this long ends the row: the next failure is a first one.
    pub steady: Duration,
}

impl Default for Restart {
    /// Five tries, after pauses of 200 ms to 10 s; then others have it for 10 s to 5 min. A run of
    /// one minute is a success.
    fn default() -> Self {
        Self {
            tries: 5,
            first_pause: Duration::from_millis(200),
            pause_max: Duration::from_secs(10),
            hold_off: Duration::from_secs(10),
            hold_off_max: Duration::from_secs(300),
            steady: Duration::from_secs(60),
        }
    }
}

impl Restart {
    /// These, with another number of tries.
    #[must_use]
    pub const fn with_tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// These, with another first pause.
    #[must_use]
    pub const fn with_first_pause(mut self, first_pause: Duration) -> Self {
        self.first_pause = first_pause;
        self
    }

    /// These, with another longest pause.
    #[must_use]
    pub const fn with_pause_max(mut self, pause_max: Duration) -> Self {
        self.pause_max = pause_max;
        self
    }

    /// These, with another time that a job is left to others at first.
    #[must_use]
    pub const fn with_hold_off(mut self, hold_off: Duration) -> Self {
        self.hold_off = hold_off;
        self
    }

    /// These, with another longest time that a job is left to others.
    #[must_use]
    pub const fn with_hold_off_max(mut self, hold_off_max: Duration) -> Self {
        self.hold_off_max = hold_off_max;
        self
    }

    /// These, with another length of a run that ends the row of failures.
    #[must_use]
    pub const fn with_steady(mut self, steady: Duration) -> Self {
        self.steady = steady;
        self
    }
}

/// What follows when a job returns without an error, although nobody asked it to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WhenDone {
    /// It is done. This node keeps the leadership, so that no other node does it again while this
    /// one lives; whoever leads next does it again.
    #[default]
    Keep,
    /// The leadership is released, and this processor does not campaign for it again. Each node
    /// runs it once, one after the other.
    Release,
    /// It is run again, under the same leadership, after a pause.
    Again(Duration),
}

/// The failures of a job on this node, in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    /// Under this leadership.
    tried: u32,
    /// Leaderships that ended in vain.
    rounds: u32,
}

/// What follows on a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// Start it again after a pause.
    Restart(Duration),
    /// Release it, and leave it to others for a while.
    LeaveToOthers(Duration),
}

impl Failures {
    /// Counts a failure after a run of this length.
    pub(super) fn failed(&mut self, restart: &Restart, ran: Duration) -> AfterFailure {
        if ran >= restart.steady {
            *self = Self::default();
        }
        if self.tried < restart.tries {
            let pause = doubled(restart.first_pause, self.tried, restart.pause_max);
            self.tried += 1;
            return AfterFailure::Restart(pause);
        }
        let hold_off = doubled(restart.hold_off, self.rounds, restart.hold_off_max);
        *self = Self { tried: 0, rounds: self.rounds.saturating_add(1) };
        AfterFailure::LeaveToOthers(hold_off)
    }
}

#[cfg(test)]
mod tests;
