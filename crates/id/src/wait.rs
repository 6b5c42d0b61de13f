//! The calls that wait.

use core::hint;
use core::time::Duration;
use std::thread;

use crate::batch::Batch;
use crate::clock::{Clock, SystemClock, Wait};
use crate::generator::Generator;
use crate::id::Id;
use crate::layout::Layout;
use crate::not_ready::NotReady;
use crate::options::{Options, StartError};
use crate::step::Ask;

/// Below this a sleep costs more than it saves.
const SPIN_MAX: Duration = Duration::from_micros(5);
/// Nobody wakes a sleeper, so a longer wait looks around from time to time: the generator may have
/// been closed, or the clock set right.
const SLEEP_MAX: Duration = Duration::from_millis(20);

impl Generator<SystemClock> {
    /// Starts a generator on the system's clock, with the default options.
    ///
    /// Nobody but the caller sees to it that no other process uses the worker number.
    ///
    /// # Errors
    /// If the worker does not fit the layout, or the clock is outside its time.
    pub fn system(layout: &Layout, worker: u64) -> Result<Self, StartError> {
        Self::new(layout, worker, SystemClock::new(layout), Options::default())
    }
}

impl<C: Clock> Generator<C> {
    /// Issues one ID; waits while the sequence is used up or the clock is a little behind.
    ///
    /// # Errors
    /// What does not pass by itself soon: see [`NotReady::is_brief`]. By a clock that stands, as
    /// [`ManualClock`](crate::ManualClock) does, nothing passes by itself.
    #[inline]
    pub fn next(&self) -> Result<Id, NotReady> {
        let ticket = self.ticket_in_open_tick().map_or_else(|| self.wait_for_one(), Ok);
        ticket.map(|ticket| self.stamp.id(ticket))
    }

    #[cold]
    fn wait_for_one(&self) -> Result<u64, NotReady> {
        loop {
            match self.take_one() {
                Err(why) if why.is_brief() => self.wait_out(why)?,
                outcome => return outcome,
            }
        }
    }

    /// Issues exactly `n` IDs; waits as [`next`](Self::next) does, over as many ticks as it takes.
    ///
    /// # Errors
    /// As for `next`. The IDs taken until then are lost, never reused.
    pub fn batch(&self, n: u32) -> Result<Batch, NotReady> {
        let mut batch = Batch::empty(self.stamp);
        loop {
            let missing = u64::from(n) - batch.len() as u64;
            if missing == 0 {
                return Ok(batch);
            }
            match self.take(Ask::up_to(missing)) {
                Err(why) if why.is_brief() => self.wait_out(why)?,
                granted => batch.push(granted?),
            }
        }
    }

    fn wait_out(&self, why: NotReady) -> Result<(), NotReady> {
        let retry_after = why.retry_after().unwrap_or_default();
        match self.clock.wait(retry_after) {
            Wait::Sleep => pause(retry_after),
            Wait::Passed => {}
            Wait::Never => return Err(why),
        }
        Ok(())
    }
}

fn pause(retry_after: Duration) {
    if retry_after <= SPIN_MAX {
        hint::spin_loop();
    } else {
        #[expect(clippy::disallowed_methods, reason = "the one place where issuing waits")]
        thread::sleep(retry_after.min(SLEEP_MAX));
    }
}
