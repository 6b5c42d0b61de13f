//! Moves lanes to other workers while IDs are issued: another lease is taken beside the one there
//! is, and the lane is handed over to it.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::keeper::Keeper;
use frazil_coord::internal::time::boot_time;
use frazil_coord::{Grant, LeaseState, LeaseStatus, Waiting};
use tokio::sync::watch;

use super::{Lanes, LeasedLane, end_all, pass_on};
use crate::info::held_worker;
use crate::lane_lease::LaneLease;
use crate::rotation::{Moved, NotRotated};

/// A worker may be held a moment before its first tick: then it is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Leases that are to take over. Those that have not when this is dropped are given up.
struct Successors<'lanes> {
    lanes: &'lanes Lanes,
    all: Vec<Successor>,
}

/// One of them.
struct Successor {
    /// Of the lane that it is for.
    number: u64,
    /// The worker that the lane holds.
    from: u32,
    lease: Arc<LaneLease>,
    status: watch::Receiver<LeaseStatus>,
}

impl Lanes {
    /// Moves the lane that holds a worker, or all that hold one. Either all of them move or none.
    pub(crate) async fn rotate(
        &self,
        worker: Option<u32>,
        patience: Duration,
    ) -> Result<Vec<Moved>, NotRotated> {
        if self.is_copy() {
            return Err(NotRotated::Forked);
        }
        let _turn = self.rotating.lock().await;
        let deadline = boot_time().saturating_add(patience);
        let mut successors = self.begin(worker)?;
        for successor in &mut successors.all {
            if let Err(why) = successor.ready(deadline).await {
                successors.give_up().await;
                return Err(why);
            }
        }
        let (moved, old) = successors.take_over();
        end_all(old).await;
        match moved.is_empty() {
            // Lanes that went meanwhile have released their workers.
            true if self.keepers().is_over => Err(NotRotated::Ended),
            true => Err(NotRotated::NotHeld),
            false => Ok(moved),
        }
    }

    /// Starts a lease for each lane that is to move.
    fn begin(&self, worker: Option<u32>) -> Result<Successors<'_>, NotRotated> {
        let mut keepers = self.keepers();
        if keepers.is_over {
            return Err(NotRotated::Ended);
        }
        let (mut all, mut coming) = (Vec::new(), Vec::new());
        for leased in &keepers.leased {
            let held = held_worker(&leased.keeper.status().borrow());
            let Some(from) = held.filter(|held| worker.is_none_or(|worker| worker == *held)) else {
                continue;
            };
            let lease = Arc::new(leased.lease.standby());
            let keeper = self.template.keeper(lease.clone()).map_err(NotRotated::Refused)?;
            let (number, status) = (leased.number, keeper.status());
            all.push(Successor { number, from, lease: lease.clone(), status });
            coming.push(LeasedLane { number, keeper, lease });
        }
        if coming.is_empty() {
            let state =
                keepers.leased.first().map(|leased| leased.keeper.status().borrow().state.clone());
            return Err(worker.map_or_else(|| not_yet(state), |_| NotRotated::NotHeld));
        }
        keepers.coming = coming;
        Ok(Successors { lanes: self, all })
    }
}

impl Successors<'_> {
    /// Hands every lane over. Gives what moved, and the leases that are to be released.
    fn take_over(&self) -> (Vec<Moved>, Vec<Keeper>) {
        let lanes = self.lanes;
        let mut keepers = lanes.keepers();
        let (mut moved, mut old) = (Vec::new(), Vec::new());
        for successor in &self.all {
            let number = successor.number;
            let is_for = |leased: &LeasedLane| leased.number == number;
            // Missing if the node was shut down, or the lane was dropped.
            let Some(place) = keepers.leased.iter().position(is_for) else { continue };
            let Some(comes) = keepers.coming.iter().position(is_for) else { continue };
            let Some(grant) = keepers.leased[place].lease.hand_over(&successor.lease) else {
                continue;
            };
            let newcomer = keepers.coming.swap_remove(comes);
            let status = newcomer.keeper.status();
            old.push(std::mem::replace(&mut keepers.leased[place], newcomer).keeper);
            lanes.change(|entries| {
                for entry in entries.iter_mut().filter(|entry| entry.lane.number == number) {
                    entry.status = status.clone();
                }
            });
            lanes.template.runtime.spawn(pass_on(status, lanes.list.clone()));
            let Grant { worker, token, floor, horizon } = grant;
            let from = successor.from;
            tracing::info!(from, worker, %token, floor, horizon, "rotated to worker {worker}");
            moved.push(Moved { from, to: worker });
        }
        (moved, old)
    }

    /// Releases what was taken in vain, and waits for that.
    async fn give_up(self) {
        let coming = std::mem::take(&mut self.lanes.keepers().coming);
        end_all(coming.into_iter().map(|leased| leased.keeper)).await;
    }
}

impl Drop for Successors<'_> {
    fn drop(&mut self) {
        // A keeper that is dropped releases in the background.
        let coming = std::mem::take(&mut self.lanes.keepers().coming);
        drop(coming);
    }
}

impl Successor {
    /// Waits until the lane could issue under the new lease.
    async fn ready(&mut self, deadline: Duration) -> Result<(), NotRotated> {
        loop {
            let state = self.status.borrow_and_update().state.clone();
            let is_held = state == LeaseState::Held;
            if is_held && matches!(self.lease.trial(), Some(Ok(Ok(())))) {
                return Ok(());
            }
            let left = deadline.saturating_sub(boot_time());
            if left.is_zero() || matches!(state, LeaseState::Refused(_) | LeaseState::Released) {
                return Err(not_yet(Some(state)));
            }
            let pause = if is_held { left.min(LOOK_AGAIN) } else { left };
            // Both a time-out and the end of the lease are looked at above; but a sender that is
            // gone without a last word would be asked for ever.
            if let Ok(Err(_)) = tokio::time::timeout(pause, self.status.changed()).await {
                let last = self.status.borrow().state.clone();
                return Err(match last {
                    LeaseState::Refused(refusal) => NotRotated::Refused(refusal),
                    _ => NotRotated::Ended,
                });
            }
        }
    }
}

/// What a lease without a worker, or one that cannot be used yet, means for a rotation.
fn not_yet(state: Option<LeaseState>) -> NotRotated {
    match state {
        None | Some(LeaseState::Released) => NotRotated::Ended,
        Some(LeaseState::Refused(refusal)) => NotRotated::Refused(refusal),
        Some(LeaseState::Seeking(waiting) | LeaseState::Replacing(_, waiting)) => {
            NotRotated::NoOther(waiting)
        }
        Some(LeaseState::Distrusted(skew)) => NotRotated::NoOther(Waiting::Clock(skew)),
        Some(LeaseState::Held | LeaseState::Unrenewed) => NotRotated::NoOther(Waiting::Answer),
    }
}
