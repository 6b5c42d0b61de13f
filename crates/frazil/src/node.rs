//! A process that issues Ids: lanes and the leases behind them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frazil_coord::keeper::{Keeper, LeaseState, LeaseStatus};
use frazil_coord::time::unix_ms;
use frazil_coord::{Namespace, Store};
use frazil_id::{Batch, Id, Layout, NotReady};
use tokio::sync::watch;

use crate::builder::Builder;
use crate::clock::DisciplinedClock;
use crate::info::{LaneInfo, NodeInfo};
use crate::lane::NodeLane;

/// Nobody wakes a waiting caller, so a longer wait looks around from time to time.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Issues Ids in the name of workers that it leases. Clones are the same node.
///
/// Ids of one lane strictly increase. With several lanes the first one is used while it has Ids to
/// give, and the next when its ticks are used up.
///
/// When the last clone is dropped, the node shuts down in the background, if its runtime still
/// runs; [`shutdown`](Self::shutdown) waits for that.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) layout: Layout,
    pub(crate) namespace: Namespace,
    pub(crate) holder: String,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<DisciplinedClock>,
    pub(crate) lanes: Vec<Arc<NodeLane>>,
    pub(crate) keepers: Mutex<Vec<Keeper>>,
    pub(crate) statuses: watch::Receiver<Vec<LeaseStatus>>,
}

/// Why a node issued no Id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotIssued {
    /// A worker is held, but it has no Id to give now.
    NotReady(NotReady),
    /// No worker is held; how its lease is doing.
    NoWorker(LeaseState),
}

impl Node {
    /// Describes a node to start.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Issues one Id; waits while the sequence is used up or the clock is a little behind.
    ///
    /// # Errors
    /// What does not pass by itself soon.
    pub async fn next(&self) -> Result<Id, NotIssued> {
        loop {
            match self.try_next() {
                Err(why) => tokio::time::sleep(why.brief_wait()?).await,
                Ok(id) => return Ok(id),
            }
        }
    }

    /// Issues one Id, or says why not now.
    ///
    /// # Errors
    /// The reason.
    #[inline]
    pub fn try_next(&self) -> Result<Id, NotIssued> {
        self.ask_lanes(NodeLane::try_next)
    }

    /// Issues exactly `n` Ids of one lane, sorted; waits as [`next`](Self::next) does.
    ///
    /// # Errors
    /// What does not pass by itself soon, and a batch that no tick can ever hold: ask for less.
    pub async fn batch(&self, n: u32) -> Result<Batch, NotIssued> {
        loop {
            match self.try_batch(n) {
                Err(why) => tokio::time::sleep(why.brief_wait()?).await,
                Ok(batch) => return Ok(batch),
            }
        }
    }

    /// Issues exactly `n` Ids of one lane, or says why not now. None are lost by asking.
    ///
    /// # Errors
    /// The reason.
    pub fn try_batch(&self, n: u32) -> Result<Batch, NotIssued> {
        self.ask_lanes(|lane| lane.try_batch(n))
    }

    /// Asks the lanes in turn; if none has an Id, the reason that passes first.
    fn ask_lanes<T>(
        &self,
        ask: impl Fn(&NodeLane) -> Option<Result<T, NotReady>>,
    ) -> Result<T, NotIssued> {
        let mut reason: Option<NotReady> = None;
        for lane in &self.shared.lanes {
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
    fn no_worker(&self) -> NotIssued {
        let state = self.shared.statuses.borrow().first().map(|status| status.state.clone());
        NotIssued::NoWorker(state.unwrap_or(LeaseState::Released))
    }

    /// What the node says of itself.
    #[must_use]
    pub fn info(&self) -> NodeInfo {
        let now = unix_ms();
        let statuses = self.shared.statuses.borrow().clone();
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
        self.shared.statuses.clone()
    }

    /// Ends issuing, releases the workers and waits until that is done. Further calls do nothing.
    pub async fn shutdown(&self) {
        let keepers = {
            let mut keepers = self.shared.keepers.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *keepers)
        };
        let mut ending = tokio::task::JoinSet::new();
        for keeper in keepers {
            ending.spawn(keeper.shutdown());
        }
        while ending.join_next().await.is_some() {}
    }
}

/// Of two reasons the one that passes first.
fn sooner(one: NotReady, other: NotReady) -> NotReady {
    let wait = |why: NotReady| why.retry_after().unwrap_or(Duration::MAX);
    if wait(other) < wait(one) { other } else { one }
}

impl NotIssued {
    /// How long to wait, if waiting helps soon.
    ///
    /// # Errors
    /// The reason itself, if it does not.
    pub(crate) fn brief_wait(self) -> Result<Duration, Self> {
        match self {
            Self::NotReady(why) if why.is_brief() => {
                Ok(why.retry_after().unwrap_or_default().min(LOOK_AGAIN))
            }
            other => Err(other),
        }
    }
}

impl fmt::Display for NotIssued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady(why) => why.fmt(f),
            Self::NoWorker(state) => write!(f, "no Id without a worker: {state}"),
        }
    }
}

impl std::error::Error for NotIssued {}
