//! The leash of a lane: how far it may go without its keeper.
//!
//! A horizon is good for minutes, and a store can be wiped within them. Its holders notice, but not
//! while they are frozen; so a lane gets its times a few seconds at a time, and a process that was
//! stopped for longer than that uses none before its keeper has heard from the store, or in vain.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    /// How many requests have ended.
    ended: AtomicU64,
    /// Where the lane is present, and by which nonce.
    place: Mutex<Option<(Slot, Nonce)>>,
}

impl Leash {
    pub(super) fn new(lane: Arc<dyn Lane>, store: Arc<dyn Store>) -> Self {
        let length = if store.is_bound_to_process() { LOCAL_LEASH } else { REMOTE_LEASH };
        let (horizon, ended) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { lane, store, length, horizon, ended, place: Mutex::default() }
    }

    // Relaxed, everywhere here: one task writes, and each value makes sense by itself.

    /// Opens the lane under a grant; `nonce`: of the tenure that it comes from.
    pub(super) fn open(&self, grant: Grant, nonce: Nonce) {
        *self.place() = Some((Slot::worker(grant.worker), nonce));
        self.horizon.store(grant.horizon, Ordering::Relaxed);
        let horizon = self.within_reach(grant.horizon).max(grant.floor);
        self.lane.open(Grant { horizon, ..grant });
    }

    pub(super) fn raise(&self, horizon: UnixMs) {
        self.horizon.fetch_max(horizon, Ordering::Relaxed);
        self.lane.raise(self.within_reach(horizon));
    }

    pub(super) fn close(&self) -> UnixMs {
        self.horizon.store(0, Ordering::Relaxed);
        self.lane.close()
    }

    /// A request to the store has ended, however it did.
    pub(super) fn request_ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Hands out times for as long as this is polled.
    pub(super) async fn run(&self) {
        let mut turned = boot_time();
        // The number of requests that must have ended first, after a stop.
        let mut awaited = None;
        loop {
            tokio::time::sleep(self.length / 5).await;
            let now = boot_time();
            let ended = self.ended.load(Ordering::Relaxed);
            if now.saturating_sub(turned) > self.length {
                tracing::warn!(stopped = ?now.saturating_sub(turned), "this process was stopped");
                awaited = Some(ended + 1);
            }
            turned = now;
            if awaited.is_some_and(|awaited| ended < awaited) {
                continue;
            }
            awaited = None;
            let horizon = self.horizon.load(Ordering::Relaxed);
            if horizon > 0 && self.is_in_place() {
                self.lane.raise(self.within_reach(horizon));
            }
        }
    }

    fn is_in_place(&self) -> bool {
        self.place().as_ref().is_none_or(|(slot, nonce)| self.store.is_in_place(slot, *nonce))
    }

    fn place(&self) -> MutexGuard<'_, Option<(Slot, Nonce)>> {
        // It is replaced as a whole.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn within_reach(&self, horizon: UnixMs) -> UnixMs {
        let now = self.lane.now().max(self.lane.last());
        horizon.min(now.saturating_add(millis(self.length)))
    }
}
