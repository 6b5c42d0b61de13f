//! The reason why no ID can be issued now.

use core::fmt;
use core::time::Duration;

/// No ID now: an expected outcome, with the reason and, where waiting helps, for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReady {
    /// The sequence of every tick allowed now is used up.
    SequenceExhausted {
        /// Until the next tick with room.
        retry_after: Duration,
    },
    /// Real time stepped back by little; it will have caught up soon.
    ClockBehind {
        /// Until it has.
        retry_after: Duration,
    },
    /// Real time stepped back by as much as the rollback tolerance or more.
    ClockRefused {
        /// Until it has caught up, if it is not set right earlier.
        retry_after: Duration,
    },
    /// The next tick is past the horizon: the lease must be extended first.
    Horizon {
        /// The last tick that may be stamped.
        horizon: u64,
    },
    /// The layout has no tick left.
    TimeExhausted {
        /// Its last one.
        last_tick: u64,
    },
    /// Real time is before the layout's epoch.
    BeforeEpoch {
        /// Until the epoch.
        retry_after: Duration,
    },
    /// More IDs in one grant than may ever be granted at once.
    BatchTooLarge {
        /// The most that may.
        max: u64,
    },
    /// The generator was closed for good.
    Closed,
}

impl NotReady {
    /// After how long another attempt can succeed without anybody doing anything.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match *self {
            Self::SequenceExhausted { retry_after }
            | Self::ClockBehind { retry_after }
            | Self::ClockRefused { retry_after }
            | Self::BeforeEpoch { retry_after } => Some(retry_after),
            Self::Horizon { .. }
            | Self::TimeExhausted { .. }
            | Self::BatchTooLarge { .. }
            | Self::Closed => None,
        }
    }

    /// Whether this passes by itself in normal running, so that `next` and `batch` wait it out
    /// instead of returning it.
    #[must_use]
    pub const fn is_brief(&self) -> bool {
        matches!(self, Self::SequenceExhausted { .. } | Self::ClockBehind { .. })
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SequenceExhausted { retry_after } => write!(
                f,
                "the sequence of this tick is used up: retry in {retry_after:?}, or use more workers"
            ),
            Self::ClockBehind { retry_after } => {
                write!(f, "the clock stepped back: retry in {retry_after:?}")
            }
            Self::ClockRefused { retry_after } => write!(
                f,
                "the clock stepped back and is {retry_after:?} behind what was issued: set it right, \
                 or allow riding on elapsed time"
            ),
            Self::Horizon { horizon } => write!(
                f,
                "tick {horizon} is the last that may be stamped: extend the lease to go on"
            ),
            Self::TimeExhausted { last_tick } => write!(
                f,
                "tick {last_tick} was the layout's last: move to a layout with more time bits"
            ),
            Self::BeforeEpoch { retry_after } => write!(
                f,
                "the clock is {retry_after:?} before the layout's epoch: set it right, or use a \
                 layout with an earlier epoch"
            ),
            Self::BatchTooLarge { max } => write!(
                f,
                "at most {max} IDs can be granted at once: ask for fewer, or use the waiting `batch`"
            ),
            Self::Closed => {
                f.write_str("this generator was closed: start another one for a new lease")
            }
        }
    }
}

impl core::error::Error for NotReady {}
