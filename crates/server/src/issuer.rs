//! The policy of issuing: how many, for whom, until when, and in which order.

mod count;
mod refusal;

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use frazil::coord::time::boot_time;
use frazil::{Id, Issued, Layout, Node, NotIssued};
use frazil_id::NotReady;
use frazil_wire::{ApiError, Reason};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::config::Limits;

pub(crate) use self::count::parse_count;
use self::refusal::refusal;

/// Nobody wakes a waiting request, so a longer wait looks around from time to time.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Issues Ids for every protocol.
///
/// While there are Ids a request gets them at once. When the sequences are used up, requests wait
/// in the order in which they came, as many at a time as there are lanes; those who would wait too
/// long are sent away at once.
#[derive(Debug)]
pub(crate) struct Issuer {
    node: OnceLock<Node>,
    layout: Layout,
    limits: Limits,
    scopes: Vec<String>,
    turns: Semaphore,
    waiting: AtomicUsize,
    waiting_ids: AtomicU64,
    has_issued: AtomicBool,
    pub(crate) strain: Strain,
}

/// How hard the sequences are used.
#[derive(Debug, Default)]
pub(crate) struct Strain {
    /// Requests that met a used-up sequence.
    pub(crate) exhausted: AtomicU64,
    /// How long requests waited for Ids in all, in nanoseconds.
    pub(crate) waited_nanos: AtomicU64,
}

/// What a request wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) count: u32,
    /// How long it waits.
    pub(crate) patience: Duration,
}

/// A declared scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope(pub(crate) usize);

impl Issuer {
    pub(crate) fn new(layout: Layout, limits: Limits, scopes: Vec<String>) -> Self {
        Self {
            node: OnceLock::new(),
            layout,
            limits,
            scopes,
            turns: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            waiting_ids: AtomicU64::new(0),
            has_issued: AtomicBool::new(false),
            strain: Strain::default(),
        }
    }

    /// Gives it the node, once.
    pub(crate) fn begin(&self, node: Node) {
        let lanes = node.lanes();
        if self.node.set(node).is_ok() && lanes > 1 {
            self.turns.add_permits(lanes - 1);
        }
    }

    /// Lets one more request at a time take its turn: a lane was added.
    pub(crate) fn lane_added(&self) {
        self.turns.add_permits(1);
    }

    /// The opposite.
    pub(crate) fn lane_dropped(&self) {
        self.turns.forget_permits(1);
    }

    /// The node, as soon as its store could be opened.
    pub(crate) fn node(&self) -> Option<&Node> {
        self.node.get()
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Whether an Id was ever issued or could have been.
    pub(crate) fn has_issued(&self) -> bool {
        // Relaxed: a flag that stands for itself.
        self.has_issued.load(Ordering::Relaxed)
    }

    pub(crate) fn note_ready(&self) {
        self.has_issued.store(true, Ordering::Relaxed);
    }

    /// Finds a declared scope; none for an empty name.
    pub(crate) fn scope(&self, name: &str) -> Result<Option<Scope>, ApiError> {
        if name.is_empty() {
            return Ok(None);
        }
        let place = self.scopes.iter().position(|scope| scope == name);
        place.map(|place| Some(Scope(place))).ok_or_else(|| {
            ApiError::new(Reason::NotFound, "no scope of that name is declared on this node")
        })
    }

    /// A request for so many Ids now, within the limits, that waits as long as it may.
    pub(crate) fn want(&self, count: u32, patience: Option<Duration>) -> Result<Want, ApiError> {
        let most = self.limits.max_count;
        if count == 0 || count > most {
            return Err(ApiError::new(
                Reason::CountOutOfRange,
                format_args!("{count} Ids were asked for, and 1 to {most} are given at once"),
            ));
        }
        let patience = patience.map_or(self.limits.max_wait, |own| own.min(self.limits.max_wait));
        Ok(Want { count, patience })
    }

    /// One Id, if there is one now and nobody waits.
    #[inline]
    pub(crate) fn try_next(&self) -> Option<Id> {
        if self.is_queue_empty() { self.node()?.try_next().ok() } else { None }
    }

    /// Exactly as many Ids as wanted.
    pub(crate) async fn issue(&self, want: Want) -> Result<Issued, ApiError> {
        if self.is_queue_empty()
            && let Some(node) = self.node()
        {
            match node.try_issue(want.count) {
                Ok(issued) => return Ok(issued),
                Err(why) if !can_wait(&why) => return Err(self.refusal(&why)),
                Err(_) => {}
            }
        }
        self.in_turn(want, |node, partly| node.try_fill(partly, want.count)).await
    }

    /// From one to as many Ids as wanted.
    pub(crate) async fn issue_some(&self, want: Want) -> Result<Issued, ApiError> {
        if self.is_queue_empty()
            && let Some(node) = self.node()
            && let Ok(issued) = node.try_up_to(want.count)
        {
            return Ok(issued);
        }
        self.in_turn(want, |node, _| node.try_up_to(want.count)).await
    }

    /// Waits for a turn, then asks until there is an answer that waiting does not change.
    async fn in_turn(
        &self,
        want: Want,
        ask: impl Fn(&Node, &mut Option<Issued>) -> Result<Issued, NotIssued>,
    ) -> Result<Issued, ApiError> {
        let node = self.node().ok_or_else(not_started)?;
        let _place = self.join_queue(want)?;
        // Relaxed, here and below: statistics.
        self.strain.exhausted.fetch_add(1, Ordering::Relaxed);
        let began = boot_time();
        let deadline = began.saturating_add(want.patience);
        let outcome = async {
            let _turn = self.turn(deadline).await?;
            let mut partly = None;
            loop {
                match ask(node, &mut partly) {
                    Ok(issued) => return Ok(issued),
                    Err(why) => self.pause(&why, deadline).await?,
                }
            }
        }
        .await;
        let waited = u64::try_from((boot_time() - began).as_nanos()).unwrap_or(u64::MAX);
        self.strain.waited_nanos.fetch_add(waited, Ordering::Relaxed);
        outcome
    }

    async fn turn(&self, deadline: Duration) -> Result<SemaphorePermit<'_>, ApiError> {
        let acquired = before(deadline, self.turns.acquire()).await;
        let turn = acquired.ok_or_else(|| too_late("others were first"))?;
        turn.map_err(|_| ApiError::new(Reason::Internal, "the queue was closed"))
    }

    /// Waits for what passes by itself before the deadline.
    async fn pause(&self, why: &NotIssued, deadline: Duration) -> Result<(), ApiError> {
        if !can_wait(why) {
            return Err(self.refusal(why));
        }
        let left = deadline.saturating_sub(boot_time());
        if left.is_zero() {
            return Err(match why {
                NotIssued::NotReady(NotReady::SequenceExhausted { .. }) => too_late(why),
                _ => self.refusal(why),
            });
        }
        let NotIssued::NotReady(why) = why else { return Ok(()) };
        let wait = why.retry_after().unwrap_or_default().min(LOOK_AGAIN).min(left);
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Counts a request among those that wait, unless it would wait in vain.
    fn join_queue(&self, want: Want) -> Result<Place<'_>, ApiError> {
        let place = Place { issuer: self, count: want.count };
        // Relaxed: a limit that may be missed by those who come at the same moment.
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let ids = self.waiting_ids.fetch_add(want.count.into(), Ordering::Relaxed);
        let lanes = self.node().map_or(1, Node::lanes).max(1) as u64;
        let per_second = self.layout.ids_per_second().max(1).saturating_mul(lanes);
        let wait = Duration::from_millis(ids.saturating_mul(1000) / per_second);
        if before >= self.limits.max_waiting || wait > want.patience {
            let detail = format_args!("{before} requests wait for {ids} Ids already");
            let wait = wait.max(Duration::from_millis(1)).min(self.limits.max_wait);
            return Err(ApiError::new(Reason::Overloaded, detail).retry_after(wait));
        }
        Ok(place)
    }

    fn is_queue_empty(&self) -> bool {
        // Relaxed: whoever overtakes by a moment takes nothing that was promised.
        self.waiting.load(Ordering::Relaxed) == 0
    }

    fn refusal(&self, why: &NotIssued) -> ApiError {
        refusal(why, self.node())
    }
}

/// A place in the queue.
struct Place<'a> {
    issuer: &'a Issuer,
    count: u32,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.issuer.waiting.fetch_sub(1, Ordering::Relaxed);
        self.issuer.waiting_ids.fetch_sub(self.count.into(), Ordering::Relaxed);
    }
}

const fn can_wait(why: &NotIssued) -> bool {
    matches!(
        why,
        NotIssued::NotReady(
            NotReady::SequenceExhausted { .. }
                | NotReady::ClockBehind { .. }
                | NotReady::BatchTooLarge { .. }
        )
    )
}

/// What a future gives before a moment in boot time, if it does.
async fn before<T>(deadline: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(deadline.saturating_sub(boot_time()), future).await.ok()
}

fn too_late(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::Deadline, format_args!("no Ids within the time given: {why}"))
}

fn not_started() -> ApiError {
    ApiError::new(Reason::NoWorker, "the node is starting, and has not reached its store yet")
        .retry_after(Duration::from_secs(1))
}
