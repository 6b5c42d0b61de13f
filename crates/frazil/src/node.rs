//! A process that issues IDs: lanes and the leases behind them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::keeper::Lane;
use frazil_coord::{LeaseState, LeaseStatus, Refusal};
use frazil_coord::{Metered, Namespace, Operations, Store, StoreUrl, Token, UnixMs};
use frazil_id::{Batch, Id, Layout, NotReady};
use tokio::sync::watch;

use crate::builder::{Builder, LANES_MAX};
use crate::clock::DisciplinedClock;
use crate::info::{LaneInfo, NodeInfo};
use crate::lane::NodeLane;
use crate::lanes::Lanes;
use crate::losses::Losses;
use crate::rotation::{Moved, NotRotated};
use crate::waits::Waits;

/// What is said of a forked child.
pub(crate) const FORKED: &str = "this process was forked from the one that the node belongs to, and \
                                 its workers are the parent's: start another node in the child";

/// Issues IDs in the name of workers that it leases. Clones are the same node.
///
/// IDs of one lane strictly increase. With several lanes the first one is used while it has IDs to
/// give, and the next when its ticks are used up.
///
/// When the last clone is dropped, the node shuts down in the background, if its runtime still
/// runs; [`shutdown`](Self::shutdown) waits for that.
///
/// After a fork the node belongs to the parent. In the child every call that would issue is
/// [`NotIssued::Forked`], and to shut the copy down or to drop it does nothing. The child must not
/// go on with the parent's runtime, which shares the parent's connections: start a runtime and a
/// node of its own.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) layout: Layout,
    pub(crate) namespace: Namespace,
    pub(crate) holder: String,
    /// `None`: it was given open.
    pub(crate) url: Option<StoreUrl>,
    pub(crate) store: Arc<Metered>,
    pub(crate) clock: Arc<DisciplinedClock>,
    /// Whether IDs go on after the clock stepped back.
    pub(crate) rides: bool,
    pub(crate) losses: Arc<Losses>,
    pub(crate) lanes: Lanes,
}

/// IDs of one lane, and the tenure that they were issued under.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issued {
    /// The IDs.
    pub batch: Batch,
    /// The worker in them.
    pub worker: u32,
    /// The token of the lease.
    pub token: Token,
    /// The lane's number.
    pub(crate) lane: u64,
}

impl Issued {
    /// IDs that another node issued, and sent here.
    #[must_use]
    pub const fn elsewhere(batch: Batch, worker: u32, token: Token) -> Self {
        Self { batch, worker, token, lane: u64::MAX }
    }
}

/// Why a node issued no ID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotIssued {
    /// A worker is held, but it has no ID to give now.
    NotReady(NotReady),
    /// No worker is held; how its lease is doing.
    NoWorker(LeaseState),
    /// A worker is held, but nothing can be issued with it: the layout's time is about to end, or
    /// the clock is before its beginning.
    Unusable(frazil_id::StartError),
    /// This process was forked from the one that the node belongs to.
    Forked,
}

impl Node {
    /// Describes a node to start.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Issues one ID; waits while the sequence is used up or the clock is a little behind, and for a
    /// look at the lease after this process was stopped.
    ///
    /// # Errors
    /// What does not pass by itself soon.
    pub async fn next(&self) -> Result<Id, NotIssued> {
        let mut waits = Waits::default();
        loop {
            match self.try_next() {
                Err(why) => tokio::time::sleep(waits.next(self, why)?).await,
                Ok(id) => return Ok(id),
            }
        }
    }

    /// Issues one ID, or says why not now.
    ///
    /// # Errors
    /// The reason.
    #[inline]
    pub fn try_next(&self) -> Result<Id, NotIssued> {
        self.ask_lanes(NodeLane::try_next)
    }

    /// Issues exactly `n` IDs of one lane, sorted; waits as [`next`](Self::next) does, over as
    /// many ticks as it takes.
    ///
    /// # Errors
    /// What does not pass by itself soon. IDs taken until then are lost, never reused.
    pub async fn batch(&self, n: u32) -> Result<Batch, NotIssued> {
        self.issue(n).await.map(|issued| issued.batch)
    }

    /// As [`batch`](Self::batch), and says under which tenure the IDs were issued.
    ///
    /// # Errors
    /// As for `batch`.
    pub async fn issue(&self, n: u32) -> Result<Issued, NotIssued> {
        let (mut partly, mut waits) = (None, Waits::default());
        loop {
            match self.try_fill(&mut partly, n) {
                Err(why) => tokio::time::sleep(waits.next(self, why)?).await,
                issued => return issued,
            }
        }
    }

    /// Issues exactly `n` IDs of one lane, or says why not now. None are lost by asking.
    ///
    /// # Errors
    /// The reason; a batch that no tick can ever hold is one.
    pub fn try_batch(&self, n: u32) -> Result<Batch, NotIssued> {
        self.try_issue(n).map(|issued| issued.batch)
    }

    /// As [`try_batch`](Self::try_batch), and says under which tenure the IDs were issued.
    ///
    /// # Errors
    /// As for `try_batch`.
    #[inline]
    pub fn try_issue(&self, n: u32) -> Result<Issued, NotIssued> {
        self.ask_lanes(|lane| lane.try_batch(n))
    }

    /// Issues as many IDs of one lane as there are now: up to `n`, and at least one; none for 0.
    ///
    /// # Errors
    /// Why not even one.
    pub fn try_up_to(&self, n: u32) -> Result<Issued, NotIssued> {
        self.try_up_to_leaving(n, 0)
    }

    /// As [`try_up_to`](Self::try_up_to), and leaves so many of the ticks that IDs may run ahead of the clock to
    /// other calls: where many ask for all that there is, a call of somebody else still finds some.
    ///
    /// # Errors
    /// Why not even one.
    pub fn try_up_to_leaving(&self, n: u32, ticks: u64) -> Result<Issued, NotIssued> {
        self.ask_lanes(|lane| lane.try_up_to_leaving(n, ticks))
    }

    /// Issues exactly `n` IDs of one tenure over several calls: `partly` holds what was issued so
    /// far and is the caller's to keep from one call to the next, beginning with `None`.
    ///
    /// # Errors
    /// Why the rest cannot be issued now.
    pub fn try_fill(&self, partly: &mut Option<Issued>, n: u32) -> Result<Issued, NotIssued> {
        if partly.is_none() {
            match self.try_issue(n) {
                Err(NotIssued::NotReady(NotReady::BatchTooLarge { .. })) => {}
                done => return done,
            }
        }
        loop {
            let had = partly.as_ref().map_or(0, |some| some.batch.len());
            let missing = n.saturating_sub(u32::try_from(had).unwrap_or(u32::MAX));
            if missing == 0
                && let Some(whole) = partly.take()
            {
                return Ok(whole);
            }
            self.try_add(partly, missing)?;
        }
    }

    /// Adds as many IDs of the same tenure as there are now: up to `n`, and at least one. If that tenure is
    /// over, `partly` begins anew.
    ///
    /// # Errors
    /// Why not even one.
    pub fn try_add(&self, partly: &mut Option<Issued>, n: u32) -> Result<(), NotIssued> {
        self.try_add_leaving(partly, n, 0)
    }

    /// As [`try_add`](Self::try_add), and leaves ticks to other calls as
    /// [`try_up_to_leaving`](Self::try_up_to_leaving) does.
    ///
    /// # Errors
    /// Why not even one.
    pub fn try_add_leaving(
        &self,
        partly: &mut Option<Issued>,
        n: u32,
        ticks: u64,
    ) -> Result<(), NotIssued> {
        if let Some(some) = partly
            && self.add_to(some, n, ticks)?
        {
            return Ok(());
        }
        // What another tenure issued cannot be given any more. The rest comes from the same lane, so many that fill
        // at once must not all begin with the first one.
        let entries = self.shared.lanes.entries();
        let mut lanes: Vec<&NodeLane> = entries.iter().map(|entry| &*entry.lane).collect();
        lanes.sort_by_key(|lane| lane.last_tick());
        let ask = |lane: &NodeLane| lane.try_up_to_leaving(n, ticks);
        *partly = Some(self.ask_each(lanes.into_iter(), ask)?);
        Ok(())
    }

    /// Adds up to `n` IDs of the same tenure. `false`: that tenure is over.
    fn add_to(&self, some: &mut Issued, n: u32, ticks: u64) -> Result<bool, NotIssued> {
        let entries = self.shared.lanes.entries();
        let entry = entries.iter().find(|entry| entry.lane.number == some.lane);
        let more = entry.and_then(|entry| entry.lane.try_up_to_leaving(n, ticks));
        let Some(more) = more else { return Ok(false) };
        let more = more.map_err(NotIssued::NotReady)?;
        let is_same = (more.worker, more.token) == (some.worker, some.token);
        Ok(is_same && some.batch.join(more.batch).is_ok())
    }

    /// Whether an ID could be issued now. Takes none.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), NotIssued> {
        self.ask_lanes(NodeLane::check)
    }

    /// Asks the lanes in turn; if none has an ID, the reason that passes first.
    #[inline]
    fn ask_lanes<T>(
        &self,
        ask: impl Fn(&NodeLane) -> Option<Result<T, NotReady>>,
    ) -> Result<T, NotIssued> {
        self.ask_each(self.shared.lanes.entries().iter().map(|entry| &*entry.lane), ask)
    }

    #[inline]
    fn ask_each<'a, T>(
        &self,
        lanes: impl Iterator<Item = &'a NodeLane>,
        ask: impl Fn(&NodeLane) -> Option<Result<T, NotReady>>,
    ) -> Result<T, NotIssued> {
        let mut reason: Option<NotReady> = None;
        for lane in lanes {
            match ask(lane) {
                Some(Ok(issued)) => return Ok(issued),
                Some(Err(why)) => {
                    reason = Some(reason.map_or(why, |other| sooner(other, why)));
                }
                None => {}
            }
        }
        Err(reason.map_or_else(|| self.no_worker(), NotIssued::NotReady))
    }

    #[cold]
    pub(crate) fn no_worker(&self) -> NotIssued {
        if self.is_copy() {
            return NotIssued::Forked;
        }
        if let Some(fault) = self.shared.lanes.fault() {
            return NotIssued::Unusable(fault);
        }
        let statuses = self.shared.lanes.statuses();
        let state = statuses.borrow().first().map(|status| status.state.clone());
        NotIssued::NoWorker(state.unwrap_or(LeaseState::Released))
    }

    /// Whether this process was forked from the one that the node belongs to.
    pub(crate) fn is_copy(&self) -> bool {
        self.shared.lanes.is_copy()
    }

    /// What the node says of itself.
    #[must_use]
    pub fn info(&self) -> NodeInfo {
        let now = self.shared.clock.real_ms();
        let statuses = self.shared.lanes.statuses().borrow().clone();
        let lane = |status: LeaseStatus| LaneInfo { left: status.left(now), status };
        NodeInfo {
            namespace: self.shared.namespace.clone(),
            layout: self.shared.layout,
            store: self.shared.store.to_string(),
            guarantees: self.shared.store.guarantees(),
            holder: self.shared.holder.clone(),
            lanes: statuses.into_iter().map(lane).collect(),
            clock_steps: self.shared.clock.steps(),
        }
    }

    /// How the leases of all lanes are doing, now and whenever one of them changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Vec<LeaseStatus>> {
        self.shared.lanes.statuses()
    }

    /// The store that the workers are leased from.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// Where that store is, as it was chosen; `None` if it was given open.
    #[must_use]
    pub fn store_url(&self) -> Option<&StoreUrl> {
        self.shared.url.as_ref()
    }

    /// What was done on the store so far, by act and outcome.
    #[must_use]
    pub fn operations(&self) -> Vec<Operations> {
        self.shared.store.snapshot()
    }

    /// How often leases were lost so far, by the word of each [`Loss`](frazil_coord::Loss).
    #[must_use]
    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        self.shared.losses.counts()
    }

    /// The highest time that may have been stamped, in Unix milliseconds; 0 if none was.
    #[must_use]
    pub fn last_ms(&self) -> UnixMs {
        self.shared.lanes.entries().iter().map(|entry| entry.lane.last()).max().unwrap_or(0)
    }

    /// Now by the clock that IDs are stamped by, in Unix milliseconds, and not before what was stamped:
    /// real time as far as it is believed. What shares the times of IDs, as leaders of strict scopes do,
    /// counts from this.
    #[must_use]
    pub fn now_ms(&self) -> UnixMs {
        let Shared { layout, clock, rides, .. } = &*self.shared;
        clock.now_ms(layout, *rides).max(self.last_ms())
    }

    /// How many lanes there are.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.shared.lanes.entries().len()
    }

    /// Adds a lane with a worker of its own, which issues as soon as it has one. `false`: there
    /// are as many as can be, the node was shut down, or this is a forked child.
    ///
    /// # Errors
    /// If the operating system gives no random bits.
    pub fn add_lane(&self) -> Result<bool, Refusal> {
        if self.lanes() >= LANES_MAX { Ok(false) } else { self.shared.lanes.add() }
    }

    /// Takes the lane added last out of use and releases its worker. `false`: only one is left, or
    /// this is a forked child.
    pub async fn drop_lane(&self) -> bool {
        self.shared.lanes.drop_last().await
    }

    /// Moves to other workers without a gap: the lane that holds `worker`, or all that hold one.
    /// For each lane another worker is leased, waited for, and put to use; then the old one is
    /// released. The IDs of the lane go on and still increase. Either all of these lanes move or
    /// none, so the pool must have a free worker for each.
    ///
    /// One rotation runs at a time; others wait, and their patience begins with their turn. If the
    /// future is dropped, each lane has moved or it has not, and what was leased in vain is
    /// released in the background.
    ///
    /// # Errors
    /// Why nothing has moved.
    pub async fn rotate(
        &self,
        worker: Option<u32>,
        patience: Duration,
    ) -> Result<Vec<Moved>, NotRotated> {
        self.shared.lanes.rotate(worker, patience).await
    }

    /// Ends issuing, releases the workers and waits until that is done. Further calls do nothing, and
    /// neither does a call in a forked child.
    pub async fn shutdown(&self) {
        self.shared.lanes.end().await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // In a forked child nothing behind it is dropped: that would wake tasks and take locks of
        // threads that are not there, and a store that says good-bye would speak for the parent.
        if self.is_copy() {
            std::mem::forget(Arc::clone(&self.shared));
        }
    }
}

/// Of two reasons the one that passes first.
fn sooner(one: NotReady, other: NotReady) -> NotReady {
    let wait = |why: NotReady| why.retry_after().unwrap_or(Duration::MAX);
    if wait(other) < wait(one) { other } else { one }
}

impl fmt::Display for NotIssued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady(why) => why.fmt(f),
            Self::NoWorker(LeaseState::Refused(refusal)) => {
                f.write_str("no ID without a worker: ")?;
                refusal.fmt(f)
            }
            Self::NoWorker(state) => write!(f, "no ID without a worker: {state}"),
            Self::Forked => f.write_str(FORKED),
            Self::Unusable(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for NotIssued {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Their text is that of what they hold, so what comes next is what that rests on.
            Self::NotReady(why) => why.source(),
            Self::Unusable(fault) => fault.source(),
            Self::NoWorker(LeaseState::Refused(refusal)) => refusal.source(),
            Self::NoWorker(_) | Self::Forked => None,
        }
    }
}
