//! The source of time.

mod manual;
#[cfg(feature = "std")]
mod system;
#[cfg(feature = "std")]
mod ticker;
mod timeline;

use alloc::sync::Arc;
use core::time::Duration;

pub use self::manual::ManualClock;
#[cfg(feature = "std")]
pub use self::system::SystemClock;
#[cfg(feature = "std")]
pub use self::ticker::TickerClock;
pub use self::timeline::Timeline;

/// Tells which tick it is, and whether real time stepped back.
pub trait Clock {
    /// The tick now, if real time is in order; otherwise [`read`](Self::read) says what is wrong.
    /// May be a little old where that makes it cheap.
    fn tick(&self) -> Option<u64> {
        match self.read() {
            Reading::At(now) => Some(now.tick),
            _ => None,
        }
    }

    /// The time now, exactly. Asked for before a caller is told to wait.
    fn read(&self) -> Reading;

    /// How a caller who must wait for this clock does so. By default by sleeping.
    fn wait(&self, _time: Duration) -> Wait {
        Wait::Sleep
    }
}

/// What there is to do for somebody who waits for a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// To sleep: time passes by itself.
    Sleep,
    /// Nothing: the clock has moved on by the time to wait.
    Passed,
    /// Nothing that helps: the clock stands until somebody moves it.
    Never,
}

/// What a clock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Real time goes forward as it should.
    At(Moment),
    /// Real time is, or was, behind the highest tick that this clock ever gave.
    Stepped {
        /// Real time.
        real: Moment,
        /// How far real time is behind the highest tick; zero once it has caught up.
        behind: Duration,
        /// Where time would be had it gone on from the highest tick by elapsed time.
        steady: Moment,
    },
    /// Real time is before the layout's epoch.
    BeforeEpoch {
        /// By how much.
        by: Duration,
    },
}

/// A tick, and how much of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The tick.
    pub tick: u64,
    /// Time until the next tick begins.
    pub left: Duration,
}

#[deny(clippy::missing_trait_methods)]
impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn tick(&self) -> Option<u64> {
        (**self).tick()
    }

    fn read(&self) -> Reading {
        (**self).read()
    }

    fn wait(&self, time: Duration) -> Wait {
        (**self).wait(time)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<C: Clock + ?Sized> Clock for Arc<C> {
    #[inline]
    fn tick(&self) -> Option<u64> {
        (**self).tick()
    }

    fn read(&self) -> Reading {
        (**self).read()
    }

    fn wait(&self, time: Duration) -> Wait {
        (**self).wait(time)
    }
}
