//! The leash of a lane: how far it may go without its keeper.
//!
//! A horizon is good for minutes, and a store can be wiped within them. Its holders notice, but not
//! while they are frozen; so a lane gets its times a few seconds at a time, and a process that was
//! stopped for longer than that uses none before its keeper has heard from the store, or in vain.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Grant, Lane};
use crate::nonce::Nonce;
use crate::record::UnixMs;
use crate::rules::{LOCAL_LEASH, REMOTE_LEASH};
use crate::slot::Slot;
use crate::store::Store;
use crate::time::{boot_time, millis};

/// Hands a lane its times.
pub(super) struct Leash {
    pub(super) lane: Arc<dyn Lane>,
    store: Arc<dyn Store>,
    length: Duration,
    /// What the store has acknowledged; 0 if nothing.
    horizon: AtomicU64,
    /// Where the lane began: its times run ahead of now until that has passed.
    floor: AtomicU64,
    /// When the request was made that ended last, in milliseconds of boot time.
    heard: AtomicU64,
    /// Where the lane is present, and by which nonce.
    place: Mutex<Option<(Slot, Nonce)>>,
    /// Told when the store must be asked before the lane goes on.
    woken: Notify,
}

/// Notices when the process was stopped.
struct Watchman {
    /// When it looked last, in boot time.
    turned: Duration,
    /// A request made before this may have been answered before the last stop.
    ask_after: Duration,
}

impl Leash {
    pub(super) fn new(lane: Arc<dyn Lane>, store: Arc<dyn Store>) -> Self {
        let length = if store.is_bound_to_process() { LOCAL_LEASH } else { REMOTE_LEASH };
        let (horizon, floor, heard) = <(AtomicU64, AtomicU64, AtomicU64)>::default();
        let (place, woken) = (Mutex::default(), Notify::new());
        Self { lane, store, length, horizon, floor, heard, place, woken }
    }

    // Relaxed, everywhere here: one task writes, and each value makes sense by itself.

    /// Opens the lane under a grant that was asked for at some boot time; `nonce`: of the tenure that
    /// it comes from.
    pub(super) fn open(&self, grant: Grant, nonce: Nonce, asked: Duration) {
        *self.place() = Some((Slot::worker(grant.worker), nonce));
        self.horizon.store(grant.horizon, Ordering::Relaxed);
        self.floor.store(grant.floor, Ordering::Relaxed);
        let reach = if self.is_fresh(asked) { self.within_reach(grant.horizon) } else { 0 };
        self.lane.open(Grant { horizon: reach.max(grant.floor), ..grant });
    }

    /// The store has acknowledged a horizon that it was asked for at some boot time.
    pub(super) fn raise(&self, horizon: UnixMs, asked: Duration) {
        self.horizon.fetch_max(horizon, Ordering::Relaxed);
        if self.is_fresh(asked) {
            self.lane.raise(self.within_reach(horizon));
        }
    }

    pub(super) fn close(&self) -> UnixMs {
        self.horizon.store(0, Ordering::Relaxed);
        self.lane.close()
    }

    /// A request to the store has ended, however it did, that was made at some boot time.
    pub(super) fn request_ended(&self, asked: Duration) {
        self.heard.store(millis(asked), Ordering::Relaxed);
    }

    /// Hands out times for as long as this is polled.
    pub(super) async fn run(&self) {
        let mut watchman = Watchman { turned: boot_time(), ask_after: Duration::ZERO };
        loop {
            tokio::time::sleep(self.pace()).await;
            self.turn(&mut watchman, boot_time());
        }
    }

    /// Waits for the end of a stop, after which the lane waits for an answer of the store.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }

    fn pace(&self) -> Duration {
        self.length / 5
    }

    /// Hands out times once; `now`: by boot time.
    fn turn(&self, watchman: &mut Watchman, now: Duration) {
        let since = now.saturating_sub(watchman.turned);
        watchman.turned = now;
        if since > self.length {
            tracing::warn!(stopped = ?since, "this process was stopped");
            // The stop took longer than that, and the keeper may have woken up first.
            watchman.ask_after = now.saturating_sub(self.pace());
            self.woken.notify_one();
        }
        let has_heard = self.heard.load(Ordering::Relaxed) >= millis(watchman.ask_after);
        let horizon = self.horizon.load(Ordering::Relaxed);
        if has_heard && horizon > 0 && self.is_in_place() {
            self.lane.raise(self.within_reach(horizon));
        }
    }

    /// Whether the answer to a request is not older than a lane may go without one: a process that
    /// was stopped in between finds one waiting that says nothing of what happened since.
    fn is_fresh(&self, asked: Duration) -> bool {
        boot_time().saturating_sub(asked) <= self.length
    }

    fn is_in_place(&self) -> bool {
        self.place().as_ref().is_none_or(|(slot, nonce)| self.store.is_in_place(slot, *nonce))
    }

    fn place(&self) -> MutexGuard<'_, Option<(Slot, Nonce)>> {
        // It is replaced as a whole.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn within_reach(&self, horizon: UnixMs) -> UnixMs {
        let now = self.lane.now().max(self.lane.steady());
        // Times that run ahead of the clock are used up by a few of them: they need little room.
        let ahead = self.lane.last().max(self.floor.load(Ordering::Relaxed));
        let far = now.saturating_add(millis(self.length));
        horizon.min(far.max(ahead.saturating_add(millis(self.pace()))))
    }
}

#[cfg(test)]
mod tests;
