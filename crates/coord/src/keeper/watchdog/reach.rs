//! The rule of the watchdog, pure: no task, no clock, no store.

use std::time::Duration;

use crate::keeper::Grant;
use crate::record::UnixMs;
use crate::rules::HEARD_FOR;
use crate::time::millis;

/// How far a lane may go without its keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reach {
    length: Duration,
    /// What the store has acknowledged; 0 if nothing.
    horizon: UnixMs,
    /// Where the lane began: its times run ahead of now until that has passed.
    floor: UnixMs,
    /// When the last request was made that ended with nothing against the lane's going on, in boot time.
    heard: Duration,
    /// When the keeper's task turned last, in boot time.
    turned: Duration,
    /// A request made before this may have been answered before the last stop, in boot time.
    ask_after: Duration,
}

/// The present of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneNow {
    /// Time since the machine started.
    pub boot: Duration,
    /// Real time by the lane's clock, or where that would be had it never stepped back.
    pub unix: UnixMs,
    /// The highest time that the lane may have used.
    pub last: UnixMs,
}

impl Reach {
    /// A lane that has nothing to use yet; `boot`: now, in boot time.
    #[must_use]
    pub const fn new(length: Duration, boot: Duration) -> Self {
        let (heard, ask_after) = (Duration::ZERO, Duration::ZERO);
        Self { length, horizon: 0, floor: 0, heard, turned: boot, ask_after }
    }

    /// Between two turns of the keeper's task.
    #[must_use]
    pub fn pace(&self) -> Duration {
        self.length / 5
    }

    /// What to open the lane with under a grant that was asked for at some boot time.
    #[must_use]
    pub fn open(&mut self, grant: Grant, asked: Duration, now: LaneNow) -> Grant {
        (self.horizon, self.floor) = (grant.horizon, grant.floor);
        self.heard = self.heard.max(asked);
        let reach = if self.is_fresh(asked, now) { self.within(grant.horizon, now) } else { 0 };
        Grant { horizon: reach.max(grant.floor), ..grant }
    }

    /// What to raise the lane to, after the store acknowledged a horizon that it was asked for at
    /// some boot time.
    #[must_use]
    pub fn raise(&mut self, horizon: UnixMs, asked: Duration, now: LaneNow) -> Option<UnixMs> {
        self.horizon = self.horizon.max(horizon);
        self.heard = self.heard.max(asked);
        self.is_fresh(asked, now).then(|| self.within(horizon, now))
    }

    /// The lane uses nothing any more.
    pub const fn close(&mut self) {
        self.horizon = 0;
    }

    /// Whether the lane has anything to use.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.horizon > 0
    }

    /// A request to the store has ended; `heard`: when the last was made that says nothing against the
    /// lane's going on.
    pub const fn request_ended(&mut self, heard: Duration) {
        self.heard = heard;
    }

    /// The keeper's task turns; `boot`: now, in boot time. For how long the process was stopped, if
    /// that is longer than a lane may go by itself: the store must be asked before the lane goes on.
    #[must_use]
    pub fn turn(&mut self, boot: Duration) -> Option<Duration> {
        let since = boot.saturating_sub(self.turned);
        self.turned = boot;
        let stopped = (since > self.length).then_some(since)?;
        // The stop took longer than that, and the keeper may have woken up first.
        self.ask_after = boot.saturating_sub(self.pace());
        Some(stopped)
    }

    /// What to raise the lane to now, if the store is still in place.
    #[must_use]
    pub fn now(&self, now: LaneNow) -> Option<UnixMs> {
        let was_heard = self.heard >= self.ask_after && now.boot < self.heard + HEARD_FOR;
        (self.is_open() && was_heard).then(|| self.within(self.horizon, now))
    }

    /// Whether the answer to a request is not older than a lane may go without one: a process that
    /// was stopped in between finds one waiting that says nothing of what happened since.
    fn is_fresh(&self, asked: Duration, now: LaneNow) -> bool {
        now.boot.saturating_sub(asked) <= self.length
    }

    fn within(&self, horizon: UnixMs, now: LaneNow) -> UnixMs {
        let left = (self.heard + HEARD_FOR).saturating_sub(now.boot);
        let far = now.unix.saturating_add(millis(self.length.min(left)));
        // Times that run ahead of the clock are used up by a few of them: they need little room.
        let ahead = now.last.max(self.floor).saturating_add(millis(self.pace().min(left)));
        horizon.min(far.max(ahead))
    }
}
