//! A lease's place at a lane, which it can hand over to another while Ids are issued.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frazil_coord::keeper::{Grant, Lane, StoreTime};
use frazil_coord::{Loss, UnixMs};
use frazil_id::{NotReady, StartError};

use crate::lane::NodeLane;

/// What stands between a lease and its lane: only one lease at a time has a say in a lane.
#[derive(Debug)]
pub(crate) struct Berth {
    lane: Arc<NodeLane>,
    post: Mutex<Post>,
}

#[derive(Clone, Copy, Debug)]
enum Post {
    /// The lane uses what this lease is granted.
    Seated,
    /// The lane uses what another is granted; this is what would be used.
    Waiting(Option<Grant>),
    /// Another has taken over; the highest time used until then.
    Left(UnixMs),
}

impl Berth {
    /// The first one of a lane.
    pub(crate) fn seated(lane: Arc<NodeLane>) -> Self {
        Self { lane, post: Mutex::new(Post::Seated) }
    }

    /// One that can take over later.
    pub(crate) fn waiting(&self) -> Self {
        Self { lane: self.lane.clone(), post: Mutex::new(Post::Waiting(None)) }
    }

    /// Whether the lane would issue under what this one is granted. `None`: it is granted nothing,
    /// or does not wait.
    pub(crate) fn trial(&self) -> Option<Result<Result<(), NotReady>, StartError>> {
        let Post::Waiting(Some(grant)) = *self.post() else { return None };
        Some(self.lane.trial(grant))
    }

    /// From here on the lane uses what `successor` is granted, without a gap, and above all that
    /// it used before. `None`: one of the two is not what it must be for that, and nothing changed.
    pub(crate) fn hand_over(&self, successor: &Self) -> Option<Grant> {
        // Always in this order, and by one rotation at a time. Both stay locked: a lane listens to
        // one lease at a time.
        let (mut old, mut new) = (self.post(), successor.post());
        let (Post::Seated, Post::Waiting(Some(grant))) = (*old, *new) else { return None };
        *old = Post::Left(self.lane.seat(grant));
        *new = Post::Seated;
        Some(grant)
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane for Berth {
    fn now(&self) -> UnixMs {
        self.lane.now()
    }

    fn steady(&self) -> UnixMs {
        self.lane.steady()
    }

    fn open(&self, grant: Grant) {
        match &mut *self.post() {
            Post::Seated => self.lane.open(grant),
            Post::Waiting(granted) => *granted = Some(grant),
            Post::Left(_) => {}
        }
    }

    fn raise(&self, horizon: UnixMs) {
        match &mut *self.post() {
            Post::Seated => self.lane.raise(horizon),
            Post::Waiting(Some(grant)) => grant.horizon = horizon,
            Post::Waiting(None) | Post::Left(_) => {}
        }
    }

    fn last(&self) -> UnixMs {
        match *self.post() {
            Post::Seated => self.lane.last(),
            Post::Waiting(_) => 0,
            Post::Left(last) => last,
        }
    }

    fn close(&self) -> UnixMs {
        match &mut *self.post() {
            Post::Seated => self.lane.close(),
            Post::Waiting(granted) => {
                *granted = None;
                0
            }
            Post::Left(last) => *last,
        }
    }

    fn lost(&self, loss: &Loss) {
        self.lane.lost(loss);
    }

    fn hear(&self, store: StoreTime) {
        // Whether the lane can go on is known to the lease that it uses.
        if matches!(*self.post(), Post::Seated) {
            self.lane.hear(store);
        }
    }
}
