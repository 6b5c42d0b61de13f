//! The options of a generator.

use core::fmt;
use core::time::Duration;

use crate::layout::Layout;
use crate::not_ready::NotReady;
use crate::step::Rules;

/// Ticket bits a generator can use: the top bit of the state word says that it is past all tickets.
const TICKET_BITS_MAX: u32 = 63;
/// IDs further ahead than this say nothing about time.
const AHEAD_MAX: Duration = Duration::from_hours(1);

/// Choices for a [`Generator`](crate::Generator), with defaults for one that nobody coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The tick to start above: the horizon of all holders of the worker before this one. `None`
    /// when nobody wrote it down; then the generator starts after the current tick, so that a
    /// quick restart repeats nothing as long as the clock does not go back in between.
    pub floor: Option<u64>,
    /// The last tick that may be stamped for now; `None` for the layout's last.
    pub horizon: Option<u64>,
    /// How far IDs may run ahead of the clock when a tick's sequence is used up.
    pub max_ahead: Duration,
    /// What to do when real time steps back.
    pub rollback: Rollback,
    /// Steps back shorter than this are waited out under [`Rollback::Refuse`].
    pub rollback_tolerance: Duration,
    /// Opens each tick at a pseudo-random sequence below this, so that IDs issued at a low rate do
    /// not share their low bits (`id % n` then spreads evenly). 0 opens at sequence 0. Costs half
    /// of this many IDs a tick on average.
    pub spread: u32,
    /// Refuses to start when the layout's last instant is nearer than this.
    pub least_lifetime: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Options {
    /// No floor, no horizon, never ahead of the clock, and no IDs after a step back of 5 ms or more.
    pub const DEFAULT: Self = Self {
        floor: None,
        horizon: None,
        max_ahead: Duration::ZERO,
        rollback: Rollback::Refuse,
        rollback_tolerance: Duration::from_millis(5),
        spread: 0,
        // A process that would run dry within hours is found at its start, by day.
        least_lifetime: Duration::from_hours(24),
    };

    /// These, with a tick to start above.
    #[must_use]
    pub const fn with_floor(mut self, floor: u64) -> Self {
        self.floor = Some(floor);
        self
    }

    /// These, with a last tick for now.
    #[must_use]
    pub const fn with_horizon(mut self, horizon: u64) -> Self {
        self.horizon = Some(horizon);
        self
    }

    /// These, with another time that IDs may run ahead by.
    #[must_use]
    pub const fn with_max_ahead(mut self, max_ahead: Duration) -> Self {
        self.max_ahead = max_ahead;
        self
    }

    /// These, with something else to do when real time steps back.
    #[must_use]
    pub const fn with_rollback(mut self, rollback: Rollback) -> Self {
        self.rollback = rollback;
        self
    }

    /// These, with other steps back that are waited out.
    #[must_use]
    pub const fn with_rollback_tolerance(mut self, rollback_tolerance: Duration) -> Self {
        self.rollback_tolerance = rollback_tolerance;
        self
    }

    /// These, with another spread of what ticks open at.
    #[must_use]
    pub const fn with_spread(mut self, spread: u32) -> Self {
        self.spread = spread;
        self
    }

    /// These, with another lifetime that the layout must still have.
    #[must_use]
    pub const fn with_least_lifetime(mut self, least_lifetime: Duration) -> Self {
        self.least_lifetime = least_lifetime;
        self
    }

    /// The rules that follow for a worker of a layout.
    ///
    /// # Errors
    /// If the worker or a choice does not fit the layout.
    pub fn rules(&self, layout: &Layout, worker: u64) -> Result<Rules, StartError> {
        let ticket_bits = layout.time_bits() + layout.sequence_bits();
        if ticket_bits > TICKET_BITS_MAX {
            return Err(StartError::DecodeOnly { ticket_bits });
        }
        if worker > layout.last_worker() {
            return Err(StartError::WorkerTooLarge { worker, max: layout.last_worker() });
        }
        if self.max_ahead > AHEAD_MAX {
            return Err(StartError::AheadTooLong { ahead: self.max_ahead, max: AHEAD_MAX });
        }
        let spread_max = layout.ids_per_tick() / 2;
        if u64::from(self.spread) > spread_max {
            return Err(StartError::SpreadTooLarge { spread: self.spread, max: spread_max });
        }
        if let Some(floor) = self.floor
            && floor >= layout.last_tick()
        {
            return Err(StartError::FloorTooHigh { floor, max: layout.last_tick() - 1 });
        }
        let tick = Duration::from_millis(u64::from(layout.tick_ms()));
        let max_ahead = self.max_ahead.as_nanos() / tick.as_nanos();
        Ok(Rules {
            sequence_bits: layout.sequence_bits(),
            last_tick: layout.last_tick(),
            tick,
            max_ahead: u64::try_from(max_ahead).unwrap_or(u64::MAX).min(layout.last_tick()),
            rollback: self.rollback,
            rollback_tolerance: self.rollback_tolerance,
            spread: u64::from(self.spread),
            salt: worker,
        })
    }
}

/// What to do when real time steps back behind what it said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Rollback {
    /// Wait until real time has caught up, however long that takes.
    Wait,
    /// Wait out steps below the tolerance and refuse above it, until real time has caught up.
    #[default]
    Refuse,
    /// Go on by elapsed time from where real time was, and let real time catch up.
    Ride,
}

/// Why a generator cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The worker number does not fit the layout.
    WorkerTooLarge {
        /// The number.
        worker: u64,
        /// The highest that fits.
        max: u64,
    },
    /// Time and sequence leave no room for a worker; IDs of the layout can only be decoded.
    DecodeOnly {
        /// Bits of time and sequence.
        ticket_bits: u32,
    },
    /// The spread takes more than half of a tick's IDs.
    SpreadTooLarge {
        /// The spread.
        spread: u32,
        /// The largest allowed.
        max: u64,
    },
    /// IDs may run too far ahead of time.
    AheadTooLong {
        /// The time asked for.
        ahead: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// No tick is left above the floor.
    FloorTooHigh {
        /// The floor.
        floor: u64,
        /// The highest allowed.
        max: u64,
    },
    /// The layout ends too soon.
    LifetimeTooShort {
        /// Time left.
        left: Duration,
        /// Time asked for.
        least: Duration,
    },
    /// The clock cannot be used.
    Clock(NotReady),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkerTooLarge { worker, max } => {
                write!(f, "worker {worker} does not fit: the layout allows 0 to {max}")
            }
            Self::DecodeOnly { ticket_bits } => write!(
                f,
                "time and sequence take {ticket_bits} bits and issuing allows {TICKET_BITS_MAX}: \
                 IDs of this layout can only be decoded"
            ),
            Self::SpreadTooLarge { spread, max } => {
                write!(f, "a spread of {spread} is above {max}, half of a tick's IDs")
            }
            Self::AheadTooLong { ahead, max } => {
                write!(f, "running {ahead:?} ahead of time is too much: use at most {max:?}")
            }
            Self::FloorTooHigh { floor, max } => {
                write!(f, "floor {floor} leaves no tick to stamp: the layout allows up to {max}")
            }
            Self::LifetimeTooShort { left, least } => write!(
                f,
                "the layout ends in {left:?} and at least {least:?} is asked for: move to a layout \
                 with more time bits"
            ),
            Self::Clock(why) => {
                f.write_str("the clock cannot be used")?;
                if f.alternate() { write!(f, ": {why}") } else { Ok(()) }
            }
        }
    }
}

impl core::error::Error for StartError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Clock(why) => Some(why),
            _ => None,
        }
    }
}
