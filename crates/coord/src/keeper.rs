//! Keeps one lane in a worker: acquires, renews, replaces what is lost, releases.
//!
//! All decisions are in [`Plan`], which is pure: it is told what time it is and what the store
//! answered, and says what to do next. [`Keeper`] is the driver: it owns the task and the timers,
//! carries out what the plan says and tells the [`Lane`].

mod driver;
mod journal;
mod leash;
mod plan;
mod setup;
mod status;

use std::time::Duration;

use crate::lease::Loss;
use crate::record::{Token, UnixMs};

pub use self::driver::Keeper;
pub use self::leash::{LaneNow, Reach};
pub use self::plan::{Effect, Next, Now, Plan};
pub use self::setup::Setup;
pub use self::status::{ClockSkew, Judge, LeaseState, LeaseStatus, Pool, Refusal, Waiting};
pub use crate::birth::FirstUse;
pub use crate::rules::CLOCK_BOUND_MS;

/// What a lease is kept for: it uses times, each at most once, within the bounds that it is given.
pub trait Lane: Send + Sync + 'static {
    /// Now, by the clock that the times come from.
    fn now(&self) -> UnixMs;

    /// Where the clock that the times come from would be had it never stepped back.
    fn steady(&self) -> UnixMs {
        self.now()
    }

    /// Uses times under a new grant from now on, above its floor and above everything used under
    /// the grant before it, which is closed. Nobody who wants a time may fail in between.
    fn open(&self, grant: Grant);

    /// Allows times up to this one.
    fn raise(&self, horizon: UnixMs);

    /// The highest time that may have been used, 0 if none.
    fn last(&self) -> UnixMs;

    /// Uses no time any more; gives the highest that was used, 0 if none.
    fn close(&self) -> UnixMs;

    /// The store's own clock was heard, where it has one. Not told while the lane's clock is past the
    /// horizon: a lane that comes to believe its clock by this can go on at once.
    fn hear(&self, _store: StoreTime) {}

    /// The tenure that the times were used under was lost. It is told once for each.
    fn lost(&self, _loss: &Loss) {}
}

/// What the store's clock showed at some moment between two boot times of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTime {
    /// What it showed.
    pub unix: UnixMs,
    /// When the store was asked.
    pub asked: Duration,
    /// When it had answered.
    pub answered: Duration,
}

/// The right to use times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// In the name of this worker.
    pub worker: u32,
    /// With this token.
    pub token: Token,
    /// Only times after this.
    pub floor: UnixMs,
    /// And none after this, until it is raised.
    pub horizon: UnixMs,
}
