//! The watchdog of a lane: it limits how far the lane goes without its keeper.
//!
//! A horizon is good for minutes, and a store can be wiped within them. Holders notice that, but not
//! while their process is frozen. So the watchdog hands a lane its times a few seconds at a time, and a
//! process that was stopped for longer uses none before a request of its keeper has ended.

mod reach;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

pub use self::reach::{LaneNow, Reach};
use super::{Grant, Lane};
use crate::nonce::Nonce;
use crate::record::UnixMs;
use crate::rules::{LOCAL_WATCHDOG, REMOTE_WATCHDOG};
use crate::slot::Slot;
use crate::store::Store;
use crate::time::boot_time;

/// Hands a lane its times.
pub(super) struct Watchdog {
    pub(super) lane: Arc<dyn Lane>,
    store: Arc<dyn Store>,
    state: Mutex<State>,
    /// Told when the store must be asked before the lane goes on.
    woken: Notify,
}

struct State {
    reach: Reach,
    /// Where the lane is present, and by which nonce.
    place: Option<(Slot, Nonce)>,
}

impl Watchdog {
    pub(super) fn new(lane: Arc<dyn Lane>, store: Arc<dyn Store>) -> Self {
        let length = if store.is_bound_to_process() { LOCAL_WATCHDOG } else { REMOTE_WATCHDOG };
        let state = State { reach: Reach::new(length, boot_time()), place: None };
        Self { lane, store, state: Mutex::new(state), woken: Notify::new() }
    }

    /// Opens the lane under a grant that was asked for at some boot time; `nonce`: of the tenure that
    /// it comes from.
    pub(super) fn open(&self, grant: Grant, nonce: Nonce, asked: Duration) {
        let mut state = self.state();
        state.place = Some((Slot::worker(grant.worker), nonce));
        self.lane.open(state.reach.open(grant, asked, self.now(boot_time())));
    }

    /// The store has acknowledged a horizon that it was asked for at some boot time.
    pub(super) fn raise(&self, horizon: UnixMs, asked: Duration) {
        if let Some(reach) = self.state().reach.raise(horizon, asked, self.now(boot_time())) {
            self.lane.raise(reach);
        }
    }

    pub(super) fn close(&self) -> UnixMs {
        self.state().reach.close();
        self.lane.close()
    }

    /// A request to the store has ended; `heard`: see [`Plan::heard`](super::Plan::heard).
    pub(super) fn request_ended(&self, heard: Duration) {
        self.state().reach.request_ended(heard);
        self.hand_out(boot_time());
    }

    /// Nothing of what was granted may be used any more.
    pub(super) fn revoke(&self) {
        if self.state().reach.is_open() {
            self.close();
        }
    }

    /// Hands out times for as long as this is polled.
    pub(super) async fn run(&self) {
        let pace = self.state().reach.pace();
        loop {
            tokio::time::sleep(pace).await;
            self.turn(boot_time());
        }
    }

    /// Waits for the end of a stop, after which the lane waits for an answer of the store.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Looks for a stop, and hands out times; `boot`: now, by boot time.
    fn turn(&self, boot: Duration) {
        let stopped = self.state().reach.turn(boot);
        if let Some(stopped) = stopped {
            tracing::warn!(?stopped, "this process was stopped");
            self.woken.notify_one();
        }
        self.hand_out(boot);
    }

    fn hand_out(&self, boot: Duration) {
        let state = self.state();
        let reach = state.reach.now(self.now(boot));
        if let Some(reach) = reach.filter(|_| self.is_in_place(state.place.as_ref())) {
            self.lane.raise(reach);
        }
    }

    fn is_in_place(&self, place: Option<&(Slot, Nonce)>) -> bool {
        place.is_none_or(|(slot, nonce)| self.store.is_in_place(slot, *nonce))
    }

    fn now(&self, boot: Duration) -> LaneNow {
        let unix = self.lane.now().max(self.lane.steady());
        LaneNow { boot, unix, last: self.lane.last() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each value makes sense by itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
