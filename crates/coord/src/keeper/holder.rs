//! The holder of a lease as its driver sees it.

use std::time::Duration;

use super::StoreTime;
use super::plan::{Now, Plan};
use crate::error::Error;
use crate::lease::{Claim, Loss, Released, Tenure};
use crate::record::UnixMs;
use crate::store::{Look, Store};

/// Whoever a lease is kept for: a lane that uses times in the name of a worker, or a leader.
pub trait Holder: Send + 'static {
    /// Now, by the clock that the times come from.
    fn now(&self) -> UnixMs;

    /// The highest time that may have been used, 0 if none.
    fn last(&self) -> UnixMs {
        0
    }

    /// Tells the plan what was seen since the last turn.
    fn inform(&mut self, _plan: &mut Plan) {}

    /// Completes a claim before it is sent.
    fn complete(
        &mut self,
        store: &dyn Store,
        claim: &mut Claim,
        now: Now,
    ) -> impl Future<Output = ()> + Send;

    /// What was seen a moment ago of the slot that is wanted, so that a claim need not look again.
    fn seen(&self) -> Option<Look> {
        None
    }

    /// The slot is held, by a request that was made at some boot time: see the plan's tenure.
    fn open(&mut self, plan: &Plan, asked: Duration);

    /// The slot was renewed by a request that was made at some boot time; times up to this one may be
    /// used.
    fn raise(&mut self, horizon: UnixMs, asked: Duration);

    /// No time may be used any more.
    fn close(&mut self);

    /// A tenure was lost.
    fn lost(&mut self, tenure: &Tenure, loss: &Loss);

    /// A slot was given back, or not yet.
    fn released(&mut self, tenure: &Tenure, last: UnixMs, answer: &Result<Released, Error>);

    /// The store's clock was heard.
    fn hear(&mut self, _store: StoreTime) {}

    /// A request to the store has ended, however it did.
    fn request_ended(&mut self, _plan: &Plan) {}

    /// A turn has ended, or a wait begins.
    fn tell(&mut self, plan: &Plan);

    /// Waits, unless something happens that the plan should know. Dropping this is safe.
    fn wait(&mut self, wait: Pause<'_>) -> impl Future<Output = Woken> + Send;

    /// Waits for what a request is not waited for any longer. Dropping this is safe.
    fn interrupted(&mut self) -> impl Future<Output = Woken> + Send;
}

/// What is waited for, and where.
#[derive(Debug)]
pub struct Pause<'a> {
    /// How long at most.
    pub pause: Duration,
    /// Whether to look at the slot that is wanted.
    pub looks: bool,
    /// The plan that waits.
    pub plan: &'a Plan,
    /// The store.
    pub store: &'a dyn Store,
    /// When the wait begins.
    pub now: Now,
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time is over, or something is to be looked at anew.
    ByTime,
    /// The time for which a slot was held is over.
    ByExpiry,
    /// A slot may have become free.
    ByChange,
    /// The process was stopped for a while.
    AfterStop,
    /// The lease is to end, and the highest time that was used, if that is known.
    ToEnd(Option<UnixMs>),
}
