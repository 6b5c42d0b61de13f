//! A lane in a worker, as the holder of a lease.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::StoreTime;
use super::holder::{Holder, Pause, Woken};
use super::lease_log::{LeaseLog, SAY_AGAIN};
use super::plan::{Now, Plan};
use super::status::{LeaseState, LeaseStatus, Waiting};
use super::watchdog::Watchdog;
use crate::choose::last_worker_of;
use crate::error::Error;
use crate::lease::{Choice, Claim, Loss, Released, Tenure};
use crate::record::UnixMs;
use crate::slot::Group;
use crate::store::{Store, Watched};
use crate::time::boot_time;
use crate::watching::Watching;

/// A lane on its watchdog, and all that is told of its lease.
pub(super) struct Worker {
    pub(super) watchdog: Arc<Watchdog>,
    pub(super) publish: watch::Sender<LeaseStatus>,
    /// Closed when the owner wants the lease to end.
    pub(super) stop: watch::Receiver<()>,
    pub(super) is_stopped: bool,
    /// Open while a slot is sought and none is free.
    pub(super) watching: Watching,
    pub(super) lease_log: LeaseLog,
    /// Whether the first claim asks for the last worker of a holder of the same name.
    pub(super) resumes: bool,
}

impl Worker {
    /// Waits until the owner wants the lease to end; then the lane is closed.
    async fn stopped(&mut self) -> Woken {
        if self.is_stopped {
            return std::future::pending().await;
        }
        closed(&mut self.stop).await;
        self.is_stopped = true;
        Woken::ToEnd(Some(self.watchdog.close()))
    }

    /// Waits, and while a slot is sought also for the store to say that something changed.
    async fn rest(&mut self, wait: Pause<'_>) -> Woken {
        let (LeaseState::Seeking(waiting) | LeaseState::Replacing(_, waiting)) =
            &wait.plan.status().state
        else {
            tokio::time::sleep(wait.pause).await;
            return Woken::ByTime;
        };
        // The plan, asked again too early, says again how long to wait.
        let pause = wait.pause.min(SAY_AGAIN);
        if !matches!(waiting, Waiting::Pool(_)) {
            tokio::time::sleep(pause).await;
            return Woken::ByTime;
        }
        self.watching.begin(wait.store, boot_time()).await;
        tokio::select! {
            () = tokio::time::sleep(pause) => Woken::ByTime,
            () = self.watching.changed() => Woken::ByChange,
        }
    }
}

impl Holder for Worker {
    fn now(&self) -> UnixMs {
        self.watchdog.lane.now()
    }

    fn last(&self) -> UnixMs {
        self.watchdog.lane.last()
    }

    /// Lets the first claim ask for the worker that a holder of the same name had last.
    async fn complete(&mut self, store: &dyn Store, claim: &mut Claim, _now: Now) {
        if !std::mem::take(&mut self.resumes) {
            return;
        }
        // Without an answer any worker is as good; whether the store answers, the claim will tell.
        let Ok(entries) = store.list(Group::Workers).await else { return };
        let last = last_worker_of(&claim.holder, &entries, claim);
        if let Choice::Any { favourite, .. } = &mut claim.choice {
            *favourite = favourite.or(last);
        }
    }

    fn open(&mut self, plan: &Plan, asked: Duration) {
        let (Some(grant), Some(tenure)) = (plan.status().grant, plan.tenure()) else { return };
        self.watching = Watching::new(Watched::Group(Group::Workers));
        self.lease_log.leased(grant);
        self.watchdog.open(grant, tenure.nonce, asked);
    }

    fn raise(&mut self, horizon: UnixMs, asked: Duration) {
        self.watchdog.raise(horizon, asked);
    }

    fn close(&mut self) {
        if !self.is_stopped {
            self.watchdog.close();
        }
    }

    fn lost(&mut self, tenure: &Tenure, loss: &Loss) {
        self.lease_log.lost(tenure, loss);
        self.watchdog.lane.lost(loss);
    }

    fn released(&mut self, tenure: &Tenure, last: UnixMs, answer: &Result<Released, Error>) {
        match answer {
            Ok(Released::Done) => self.lease_log.released(tenure, last),
            Ok(Released::NotHeld) => {}
            Err(error) => {
                tracing::warn!(error = %format_args!("{error:#}"), "a worker is not released yet")
            }
        }
    }

    fn hear(&mut self, store: StoreTime) {
        self.watchdog.lane.hear(store);
    }

    fn request_ended(&mut self, plan: &Plan) {
        // First: nothing of what was granted before is handed out any more.
        if plan.status().grant.is_none() {
            self.watchdog.revoke();
        }
        self.watchdog.request_ended(plan.heard());
    }

    fn tell(&mut self, plan: &Plan) {
        self.publish.send_if_modified(|published| {
            let changed = published != plan.status();
            if changed {
                published.clone_from(plan.status());
            }
            changed
        });
    }

    async fn wait(&mut self, wait: Pause<'_>) -> Woken {
        self.lease_log.waits(wait.plan.status(), wait.store, wait.now);
        let watchdog = self.watchdog.clone();
        let mut stop = self.stop.clone();
        let is_stopped = self.is_stopped;
        tokio::select! {
            biased;
            _ = closed(&mut stop), if !is_stopped => {}
            woken = self.rest(wait) => return woken,
            () = watchdog.woken() => return Woken::AfterStop,
        }
        self.stopped().await
    }

    async fn interrupted(&mut self) -> Woken {
        self.stopped().await
    }
}

/// Waits until the other end is dropped.
pub(super) async fn closed(stop: &mut watch::Receiver<()>) {
    // Nothing is ever sent.
    while stop.changed().await.is_ok() {}
}
