//! The lease of a lane, which it can hand over to another while IDs are issued.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frazil_coord::Grant;
use frazil_coord::internal::keeper::{Lane, StoreTime};
use frazil_coord::{Loss, UnixMs};
use frazil_id::{NotReady, StartError};

use crate::lane::NodeLane;

/// A lease as its lane sees it: only one lease at a time has a say in a lane.
#[derive(Debug)]
pub(crate) struct LaneLease {
    lane: Arc<NodeLane>,
    state: Mutex<LeaseState>,
}

#[derive(Clone, Copy, Debug)]
enum LeaseState {
    /// The lane uses what this lease is granted.
    Active,
    /// The lane uses what another is granted; this is what would be used.
    Standby(Option<Grant>),
    /// Another has taken over; the highest time used until then.
    HandedOver(UnixMs),
}

impl LaneLease {
    /// The first one of a lane.
    pub(crate) fn active(lane: Arc<NodeLane>) -> Self {
        Self { lane, state: Mutex::new(LeaseState::Active) }
    }

    /// One that can take over later.
    pub(crate) fn standby(&self) -> Self {
        Self { lane: self.lane.clone(), state: Mutex::new(LeaseState::Standby(None)) }
    }

    /// Whether the lane would issue under what this one is granted. `None`: it is granted nothing,
    /// or does not wait.
    pub(crate) fn trial(&self) -> Option<Result<Result<(), NotReady>, StartError>> {
        let LeaseState::Standby(Some(grant)) = *self.state() else { return None };
        Some(self.lane.trial(grant))
    }

    /// From here on the lane uses what `successor` is granted, without a gap, and above all that
    /// it used before. `None`: one of the two is not what it must be for that, and nothing changed.
    pub(crate) fn hand_over(&self, successor: &Self) -> Option<Grant> {
        // Always in this order, and by one rotation at a time. Both stay locked: a lane listens to
        // one lease at a time.
        let (mut old, mut new) = (self.state(), successor.state());
        let (LeaseState::Active, LeaseState::Standby(Some(grant))) = (*old, *new) else {
            return None;
        };
        *old = LeaseState::HandedOver(self.lane.activate(grant));
        *new = LeaseState::Active;
        Some(grant)
    }

    fn state(&self) -> MutexGuard<'_, LeaseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane for LaneLease {
    fn now(&self) -> UnixMs {
        self.lane.now()
    }

    fn steady(&self) -> UnixMs {
        self.lane.steady()
    }

    fn open(&self, grant: Grant) {
        match &mut *self.state() {
            LeaseState::Active => self.lane.open(grant),
            LeaseState::Standby(granted) => *granted = Some(grant),
            LeaseState::HandedOver(_) => {}
        }
    }

    fn raise(&self, horizon: UnixMs) {
        match &mut *self.state() {
            LeaseState::Active => self.lane.raise(horizon),
            LeaseState::Standby(Some(grant)) => grant.horizon = horizon,
            LeaseState::Standby(None) | LeaseState::HandedOver(_) => {}
        }
    }

    fn last(&self) -> UnixMs {
        match *self.state() {
            LeaseState::Active => self.lane.last(),
            LeaseState::Standby(_) => 0,
            LeaseState::HandedOver(last) => last,
        }
    }

    fn close(&self) -> UnixMs {
        match &mut *self.state() {
            LeaseState::Active => self.lane.close(),
            LeaseState::Standby(granted) => {
                *granted = None;
                0
            }
            LeaseState::HandedOver(last) => *last,
        }
    }

    fn lost(&self, loss: &Loss) {
        self.lane.lost(loss);
    }

    fn hear(&self, store: StoreTime) {
        // Whether the lane can go on is known to the lease that it uses.
        if matches!(*self.state(), LeaseState::Active) {
            self.lane.hear(store);
        }
    }
}
