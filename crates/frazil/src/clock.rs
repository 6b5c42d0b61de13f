//! Real time for a node: what elapses is counted through suspension, and steps are noticed.

mod belief;
mod look;
mod steps;
mod witness;

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::UnixMs;
use frazil_coord::internal::keeper::StoreTime;
use frazil_coord::internal::time::{boot_time, millis, unix_time};
use frazil_id::{Clock, Layout, Reading, Timeline};

use self::belief::Belief;
use self::look::Look;
use self::steps::StepCounter;
pub use self::steps::Steps;
use crate::wall_clock::WallClock;

/// The system's real time beside the time since boot.
///
/// It never goes back by itself: after a step back it tells how far behind real time is and where
/// it would be had it gone on, counted in boot time, and lets real time catch up with that line.
/// A step ahead by more than two seconds is followed once the store's clock confirms it, or once it has
/// lasted for a minute: until then time goes on from where it was, so that a clock that jumps ahead and
/// comes back is not felt. Each step is counted.
#[derive(Debug)]
pub struct DisciplinedClock {
    /// `None`: the operating system's. Asked for every ID, so that it is not behind a pointer.
    wall: Option<Arc<dyn WallClock>>,
    timeline: Timeline,
    belief: Belief,
    counter: StepCounter,
    started: Duration,
}

impl DisciplinedClock {
    /// A clock in the ticks of a layout.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self::by(None, layout)
    }

    /// The same by another source of real time, if one is given.
    pub(crate) fn by(wall: Option<Arc<dyn WallClock>>, layout: &Layout) -> Self {
        let look = Look::at(|| real_time(wall.as_ref()));
        Self {
            wall,
            timeline: Timeline::new(layout),
            belief: Belief::new(look),
            counter: StepCounter::new(look),
            started: boot_time(),
        }
    }

    /// Looks whether real time stepped since the last look: to be called every few seconds.
    pub fn look(&self) {
        let look = self.now();
        // Also when nobody issues: a jump must be seen to end.
        self.belief.judge(look);
        if let Some(step_us) = self.counter.note(look) {
            report(step_us);
        }
    }

    /// Takes in what the store's clock showed. If it confirms a jump ahead, that is followed from now on.
    pub fn hear(&self, store: StoreTime) {
        self.belief.hear(store, self.now());
    }

    /// The time to go by where no ID is stamped, in Unix milliseconds: that of the next ID, but for
    /// what lanes have used already. `rides`: after a step back IDs go on along the steady line.
    pub(crate) fn now_ms(&self, layout: &Layout, rides: bool) -> UnixMs {
        match self.read() {
            Reading::At(moment) => layout.unix_ms(moment.tick),
            Reading::Stepped { steady, .. } if rides => layout.unix_ms(steady.tick),
            Reading::Stepped { real, .. } => layout.unix_ms(real.tick),
            Reading::BeforeEpoch { .. } => self.real_ms(),
        }
    }

    /// Real time as it is, believed or not.
    pub(crate) fn real_ms(&self) -> UnixMs {
        millis(real_time(self.wall.as_ref()))
    }

    fn now(&self) -> Look {
        Look::at(|| real_time(self.wall.as_ref()))
    }

    /// The steps noticed so far.
    #[must_use]
    pub fn steps(&self) -> Steps {
        self.counter.steps()
    }
}

#[inline]
fn real_time(wall: Option<&Arc<dyn WallClock>>) -> Duration {
    wall.map_or_else(unix_time, |wall| wall.unix_time())
}

/// Tells the operator of a step.
fn report(step_us: i64) {
    let by = Duration::from_micros(step_us.unsigned_abs());
    if step_us < 0 {
        tracing::error!(
            step_us,
            "this machine's clock stepped back by {by:?}: no ID follows it. Find out what set it"
        );
    } else {
        tracing::warn!(
            step_us,
            "this machine's clock jumped ahead by {by:?}: IDs follow a jump of more than 2 s once it \
             has lasted for a minute, or the store's clock confirms it"
        );
    }
}

impl Clock for DisciplinedClock {
    #[inline]
    fn tick(&self) -> Option<u64> {
        let mut is_believed = false;
        let tick = self.timeline.tick(|| {
            let real = real_time(self.wall.as_ref());
            is_believed = self.belief.covers(real);
            // What is not believed yet must not raise the highest tick.
            if is_believed { real } else { Duration::ZERO }
        });
        // `read` then says what to go by.
        tick.filter(|_| is_believed)
    }

    fn read(&self) -> Reading {
        let elapsed = || boot_time().saturating_sub(self.started);
        self.timeline.observe(|| self.belief.judge(self.now()), elapsed)
    }
}

#[cfg(test)]
mod tests {
    use frazil_coord::internal::time::unix_ms;

    use super::*;

    #[test]
    fn steady_time_is_no_step() {
        let clock = DisciplinedClock::new(&Layout::FRAZIL);
        for _ in 0..1000 {
            clock.look();
        }
        assert_eq!(clock.steps(), Steps::default());
    }

    #[test]
    fn it_tells_the_time() {
        let clock = DisciplinedClock::new(&Layout::FRAZIL);
        let tick = clock.tick().expect("real time is in order");
        assert!(Layout::FRAZIL.unix_ms(tick).abs_diff(unix_ms()) < 60_000);
    }
}
