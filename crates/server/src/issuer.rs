//! The policy of issuing: how many, for whom, until when, and in which order.

mod count;
mod refusal;

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
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

/// When to ask again for a scope that nodes do not agree on: somebody has to mend that first.
const DISPUTED: Duration = Duration::from_secs(10);

/// Issues Ids for every protocol.
///
/// While there are Ids a request gets them at once. When the sequences are used up, requests wait
/// in the order in which they came, as many at a time as there are lanes; those who would wait too
/// long are sent away at once.
#[derive(Debug)]
pub(crate) struct Issuer {
    node: OnceLock<Node>,
    layout: Layout,
    /// Ids that a lane can give at once when nobody has asked for a while.
    burst: u64,
    limits: Limits,
    scopes: Vec<String>,
    /// Who leads a scope that is plain here and strict elsewhere, for each.
    disputes: Vec<ArcSwapOption<String>>,
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
    /// `max_ahead` is how far lanes may run ahead of the clock. Of what the limits allow, no more
    /// is accepted than one lane can issue while a request may wait.
    pub(crate) fn new(
        layout: Layout,
        max_ahead: Duration,
        mut limits: Limits,
        scopes: Vec<String>,
    ) -> Self {
        let tick = Duration::from_millis(layout.tick_ms().into());
        let ticks = u64::try_from(max_ahead.as_nanos() / tick.as_nanos()).unwrap_or(u64::MAX);
        let burst = layout.ids_per_tick().saturating_mul(ticks.saturating_add(1));
        let within = burst.saturating_add(ids_within(&layout, limits.max_wait));
        limits.max_count = limits.max_count.min(u32::try_from(within).unwrap_or(u32::MAX)).max(1);
        Self {
            node: OnceLock::new(),
            layout,
            burst,
            limits,
            disputes: scopes.iter().map(|_| ArcSwapOption::empty()).collect(),
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
        let Some(place) = self.scopes.iter().position(|scope| scope == name) else {
            let detail = "no scope of that name is declared on this node";
            return Err(ApiError::new(Reason::NotFound, detail));
        };
        match &*self.disputes[place].load() {
            None => Ok(Some(Scope(place))),
            Some(leader) => {
                let detail = format_args!(
                    "{leader} leads {name} as a strict scope, and this node declares it plain: \
                     declare it strict here too (--scope {name}=strict), or ask {leader}"
                );
                Err(ApiError::new(Reason::NoLeader, detail).retry_after(DISPUTED))
            }
        }
    }

    /// Notes who leads a scope elsewhere that is plain here. Ids of this node would break what is
    /// promised there.
    pub(crate) fn dispute(&self, Scope(place): Scope, leader: Option<String>) {
        self.disputes[place].store(leader.map(Arc::new));
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
                Err(why) if !can_wait(&why, node) => return Err(self.refusal(&why)),
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
        let began = boot_time();
        let deadline = began.saturating_add(want.patience);
        let outcome = async {
            let _turn = self.turn(deadline).await?;
            let (mut partly, mut is_counted) = (None, false);
            loop {
                match ask(node, &mut partly) {
                    Ok(issued) => return Ok(issued),
                    Err(why) => {
                        // A batch that fills over several ticks has used up nothing of others.
                        if is_exhausted(&why) && partly.is_none() && !is_counted {
                            is_counted = true;
                            // Relaxed, here and below: statistics.
                            self.strain.exhausted.fetch_add(1, Ordering::Relaxed);
                        }
                        self.pause(&why, deadline).await?;
                    }
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
    pub(crate) async fn pause(&self, why: &NotIssued, deadline: Duration) -> Result<(), ApiError> {
        let is_held_up = self.node().is_some_and(|node| node.is_held_up(why));
        if !is_held_up && !passes(why) {
            return Err(self.refusal(why));
        }
        let left = deadline.saturating_sub(boot_time());
        if left.is_zero() {
            return Err(match why {
                NotIssued::NotReady(NotReady::SequenceExhausted { .. }) => too_late(why),
                _ if is_held_up => too_late("the lease is looked at first"),
                _ => self.refusal(why),
            });
        }
        let NotIssued::NotReady(why) = why else { return Ok(()) };
        let wait = why.retry_after().unwrap_or_default();
        let wait = if is_held_up { LOOK_AGAIN } else { wait.min(LOOK_AGAIN) }.min(left);
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Counts a request among those that wait, unless it would wait in vain.
    fn join_queue(&self, want: Want) -> Result<Place<'_>, ApiError> {
        let place = Place { issuer: self, count: want.count };
        // Relaxed: a limit that may be missed by those who come at the same moment.
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let ids = self.waiting_ids.fetch_add(want.count.into(), Ordering::Relaxed);
        // One answer comes from one lane, whatever the others do.
        let own = time_for(&self.layout, u64::from(want.count).saturating_sub(self.burst));
        if own > want.patience {
            let count = want.count;
            return Err(too_late(format_args!("{count} Ids take {own:?}")));
        }
        let wait = time_for(&self.layout, ids / self.lanes_held()) + own;
        if before >= self.limits.max_waiting || wait > want.patience {
            let detail = format_args!("{before} requests wait for {ids} Ids already");
            let wait = wait.max(Duration::from_millis(1)).min(self.limits.max_wait);
            return Err(ApiError::new(Reason::Overloaded, detail).retry_after(wait));
        }
        Ok(place)
    }

    /// Lanes that have a worker.
    fn lanes_held(&self) -> u64 {
        let held = self.node().map_or(0, |node| {
            node.watch().borrow().iter().filter(|lane| lane.grant.is_some()).count()
        });
        held.max(1) as u64
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

/// Whether it passes by itself, the look at a lease that was held up included.
fn can_wait(why: &NotIssued, node: &Node) -> bool {
    passes(why) || node.is_held_up(why)
}

const fn passes(why: &NotIssued) -> bool {
    matches!(
        why,
        NotIssued::NotReady(
            NotReady::SequenceExhausted { .. }
                | NotReady::ClockBehind { .. }
                | NotReady::BatchTooLarge { .. }
        )
    )
}

const fn is_exhausted(why: &NotIssued) -> bool {
    matches!(why, NotIssued::NotReady(NotReady::SequenceExhausted { .. }))
}

/// How long one lane takes for so many Ids.
fn time_for(layout: &Layout, ids: u64) -> Duration {
    let per_tick = layout.ids_per_tick().max(1);
    let ms = (ids / per_tick).saturating_mul(layout.tick_ms().into());
    Duration::from_millis(ms)
}

/// How many Ids one lane issues in a time.
fn ids_within(layout: &Layout, time: Duration) -> u64 {
    let ticks = time.as_millis() / u128::from(layout.tick_ms());
    u64::try_from(ticks).unwrap_or(u64::MAX).saturating_mul(layout.ids_per_tick())
}

/// What a future gives before a moment in boot time, if it does.
pub(crate) async fn before<T>(deadline: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(deadline.saturating_sub(boot_time()), future).await.ok()
}

pub(crate) fn too_late(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::Deadline, format_args!("no Ids within the time given: {why}"))
}

fn not_started() -> ApiError {
    ApiError::new(Reason::NoWorker, "the node is starting, and has not reached its store yet")
        .retry_after(Duration::from_secs(1))
}
