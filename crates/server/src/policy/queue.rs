//! Requests that wait for IDs, and the order in which they get them.
//!
//! While there are IDs nobody waits. When the sequences are used up, whoever comes is queued, and one task serves the
//! queue, as many requests at a time as there are IDs for. A request that waits is an entry in a list: it has no timer,
//! asks nobody, and is woken once.

mod fair;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil::{Issued, Layout};
use frazil_wire::{ApiError, Reason};
use tokio::sync::oneshot;

pub(crate) use self::fair::Flow;
use self::fair::{FairQueue, KeyBacklog, Turn};

/// Nobody says when a lease was looked at or a clock was set right, so it is looked for.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Requests that are served before others of the thread have their turn.
const ROUND: usize = 256;

/// What gives IDs.
pub(crate) trait Source: Send + Sync + 'static {
    /// Adds from one to `count` IDs to what a request has. All are of one tenure: where that is over, it begins anew.
    fn add(&self, partly: &mut Option<Issued>, count: u32) -> Result<(), Stop>;
}

/// Why there are no IDs now.
#[derive(Debug)]
pub(crate) enum Stop {
    /// They come by themselves.
    Pause {
        after: Duration,
        /// What somebody hears whose time ends before.
        told: ApiError,
    },
    /// Waiting does not help.
    Refuse(Refused),
}

/// Why a request gets no IDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) error: ApiError,
    /// Another node may have them.
    pub(crate) may_succeed_elsewhere: bool,
}

/// How many IDs a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Exactly(u32),
    /// At least one.
    UpTo(u32),
}

/// A request for IDs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IssueRequest {
    pub(crate) count: Count,
    /// How long it waits.
    pub(crate) patience: Duration,
    pub(crate) flow: Flow,
}

/// The requests that wait for one source.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// As many as are in the state: read without its lock.
    waiting: AtomicUsize,
    layout: Layout,
    max_waiting: usize,
}

#[derive(Debug)]
struct State {
    fair: FairQueue<Waiter>,
    /// Whether a task serves it.
    is_served: bool,
}

/// A request that waits.
#[derive(Debug)]
struct Waiter {
    count: Count,
    partly: Option<Issued>,
    /// In boot time.
    deadline: Duration,
    answer: oneshot::Sender<Result<Issued, Refused>>,
}

impl Queue {
    pub(crate) fn new(layout: Layout, max_waiting: usize) -> Arc<Self> {
        // A quarter of a tick: large enough that a pipeline is served at once, small enough that nobody waits for
        // others for a whole tick.
        let quantum = u32::try_from(layout.ids_per_tick() / 4).unwrap_or(u32::MAX).clamp(16, 1024);
        let state = Mutex::new(State { fair: FairQueue::new(quantum), is_served: false });
        Arc::new(Self { state, waiting: AtomicUsize::new(0), layout, max_waiting })
    }

    /// Whether nobody waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: whoever overtakes by a moment takes nothing that was promised.
        self.waiting.load(Ordering::Relaxed) == 0
    }

    /// Whether nobody of that key waits: it need not wait for other keys, if there are IDs.
    #[inline]
    pub(crate) fn is_open_to(&self, key: u64) -> bool {
        self.is_empty() || self.state().fair.backlog(key).own == 0
    }

    /// Waits for IDs, unless that would be in vain. `lanes` is how many give IDs side by side.
    pub(crate) async fn wait<S: Source + Clone>(
        self: &Arc<Self>,
        source: &S,
        issue_request: IssueRequest,
        lanes: u64,
    ) -> Result<Issued, Refused> {
        let answer = self.join(source, issue_request, lanes)?;
        answer.await.unwrap_or_else(|_| {
            let detail = "the node is shutting down: ask another one";
            Err(ApiError::new(Reason::Draining, detail).into())
        })
    }

    fn join<S: Source + Clone>(
        self: &Arc<Self>,
        source: &S,
        issue_request: IssueRequest,
        lanes: u64,
    ) -> Result<oneshot::Receiver<Result<Issued, Refused>>, Refused> {
        let (answer, receiver) = oneshot::channel();
        let deadline = boot_time().saturating_add(issue_request.patience);
        let waiter = Waiter { count: issue_request.count, partly: None, deadline, answer };
        let mut state = self.state();
        self.check_wait(&state.fair, issue_request, lanes)?;
        state.fair.push(issue_request.flow, issue_request.count.most(), waiter);
        self.note(&state);
        if !std::mem::replace(&mut state.is_served, true) {
            tokio::spawn(Service::new(self.clone(), source.clone()).run());
        }
        Ok(receiver)
    }

    /// Whether a request can be served in time, by what is waited for before it. Keys take turns: before it come as
    /// many IDs of each other key as of its own, at the most.
    fn check_wait(
        &self,
        fair: &FairQueue<Waiter>,
        issue_request: IssueRequest,
        lanes: u64,
    ) -> Result<(), ApiError> {
        let KeyBacklog { keys, own, own_ids } = fair.backlog(issue_request.flow.key);
        let count = u64::from(issue_request.count.least());
        let fair_share = (own_ids + count).saturating_mul(keys as u64);
        let wait = time_for(&self.layout, fair.ids().min(fair_share) / lanes.max(1));
        // Who waits least is let in even where others fill the queue.
        let most = if own < self.max_waiting / (2 * keys) { 2 } else { 1 } * self.max_waiting;
        if fair.len() >= most || wait > issue_request.patience {
            let (requests, ids) = (fair.len(), fair.ids());
            let detail = format_args!("{requests} requests wait for {ids} IDs already");
            let wait = wait.clamp(Duration::from_millis(1), Duration::from_secs(2));
            return Err(ApiError::new(Reason::Overloaded, detail).retry_after(wait));
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, state: &State) {
        // Relaxed: as in `is_empty`.
        self.waiting.store(state.fair.len(), Ordering::Relaxed);
    }
}

/// Serves a queue until nobody waits.
struct Service<S> {
    queue: Arc<Queue>,
    source: S,
    /// Nobody waits, and whoever comes next is served by another one.
    is_done: bool,
}

/// What comes after a round.
enum NextStep {
    /// Nobody waits.
    Done,
    /// Others of the thread have their turn.
    Yield,
    Pause(Duration),
}

impl<S: Source> Service<S> {
    const fn new(queue: Arc<Queue>, source: S) -> Self {
        Self { queue, source, is_done: false }
    }

    async fn run(mut self) {
        let mut swept = boot_time();
        loop {
            match self.round() {
                NextStep::Done => return,
                NextStep::Yield => tokio::task::yield_now().await,
                NextStep::Pause(wait) => tokio::time::sleep(wait).await,
            }
            let now = boot_time();
            if now.saturating_sub(swept) >= LOOK_AGAIN {
                swept = now;
                self.sweep(now);
            }
        }
    }

    /// Serves requests in turn while there are IDs.
    fn round(&mut self) -> NextStep {
        // Requests that have some of their IDs wait for their own lane; another may have IDs for others.
        let mut held_up = 0;
        for _ in 0..ROUND {
            let mut state = self.queue.state();
            let Some(turn) = state.fair.next() else {
                state.is_served = false;
                self.is_done = true;
                self.queue.note(&state);
                return NextStep::Done;
            };
            let Some(stop) = self.serve(&mut state, turn) else {
                self.queue.note(&state);
                continue;
            };
            held_up += 1;
            if !stop.is_partly || held_up > state.fair.len() {
                return NextStep::Pause(stop.after);
            }
        }
        NextStep::Yield
    }

    /// Serves one request; says so if it has to wait.
    fn serve(&self, state: &mut State, mut turn: Turn<Waiter>) -> Option<BlockedRequest> {
        // Whoever asked is gone.
        if turn.item.answer.is_closed() {
            return None;
        }
        let had = turn.item.len();
        let stop = self.source.add(&mut turn.item.partly, turn.ids.min(turn.most));
        let added = turn.item.len().saturating_sub(had);
        state.fair.charge(turn.flow.key, added);
        match stop {
            Ok(()) if turn.item.is_done() => turn.item.finish(),
            Ok(()) => {
                turn.ids = turn.item.missing();
                state.fair.put_back(turn);
            }
            Err(Stop::Refuse(why)) => drop(turn.item.answer.send(Err(why))),
            // It would wait in vain.
            Err(Stop::Pause { after, told }) if turn.item.deadline <= boot_time() + after => {
                drop(turn.item.answer.send(Err(told.into())));
            }
            Err(Stop::Pause { after, .. }) => {
                let is_partly = turn.item.partly.is_some();
                state.fair.put_back(turn);
                return Some(BlockedRequest { after: after.min(LOOK_AGAIN), is_partly });
            }
        }
        None
    }

    /// Sends those away whose time is over, and forgets those who are gone.
    fn sweep(&self, now: Duration) {
        let mut state = self.queue.state();
        let over = state.fair.take_if(|one| one.deadline <= now || one.answer.is_closed());
        self.queue.note(&state);
        drop(state);
        for waiter in over {
            drop(waiter.answer.send(Err(too_late("others were first").into())));
        }
    }
}

/// A request that has to wait.
struct BlockedRequest {
    after: Duration,
    is_partly: bool,
}

impl<S> Drop for Service<S> {
    /// If its runtime ends before it: whoever waits hears it, since nobody is left to serve them.
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.queue.state();
        state.is_served = false;
        drop(state.fair.take_if(|_| true));
        self.queue.note(&state);
    }
}

impl Waiter {
    fn len(&self) -> u32 {
        self.partly.as_ref().map_or(0, |some| u32::try_from(some.batch.len()).unwrap_or(u32::MAX))
    }

    fn missing(&self) -> u32 {
        self.count.most().saturating_sub(self.len())
    }

    fn is_done(&self) -> bool {
        self.len() >= self.count.least()
    }

    fn finish(self) {
        let Self { partly, answer, .. } = self;
        if let Some(issued) = partly {
            // Whoever went away just now has lost them: they are nobody's.
            let _ = answer.send(Ok(issued));
        }
    }
}

impl Count {
    /// As many as are good enough.
    pub(crate) const fn least(self) -> u32 {
        match self {
            Self::Exactly(count) => count,
            Self::UpTo(_) => 1,
        }
    }

    /// As many as are wanted.
    pub(crate) const fn most(self) -> u32 {
        match self {
            Self::Exactly(count) | Self::UpTo(count) => count,
        }
    }

    /// The same with no more than a limit.
    pub(crate) fn at_most(self, limit: u32) -> Self {
        match self {
            Self::Exactly(count) => Self::Exactly(count.min(limit)),
            Self::UpTo(count) => Self::UpTo(count.min(limit)),
        }
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self { error, may_succeed_elsewhere: false }
    }
}

/// How long one lane takes for so many IDs.
pub(crate) fn time_for(layout: &Layout, ids: u64) -> Duration {
    let per_tick = layout.ids_per_tick().max(1);
    let ms = (ids / per_tick).saturating_mul(layout.tick_ms().into());
    Duration::from_millis(ms)
}

pub(crate) fn too_late(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::Deadline, format_args!("no IDs within the time given: {why}"))
}

#[cfg(test)]
mod tests;
