//! The policy of issuing: how many, for whom, until when, and in which order.

mod count;
mod refusal;

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use frazil::coord::internal::time::boot_time;
use frazil::{Issued, Layout, Node, NotIssued};
use frazil_id::NotReady;
use frazil_wire::{ApiError, Reason};

use crate::config::Limits;
use crate::policy::queue::{
    Count, Flow, IssueRequest, LOOK_AGAIN, Queue, Source, Stop, time_for, too_late,
};

pub(crate) use self::count::parse_count;
use self::refusal::refusal;

/// Of the ticks that IDs may run ahead of the clock, this part is for keys of which nobody waits: however
/// much others ask for, whoever asks for little finds some.
const LEFT: u64 = 4;

/// When to ask again for a scope that nodes do not agree on: somebody has to repair that first.
const DISPUTED: Duration = Duration::from_secs(10);

/// Issues IDs for every protocol.
///
/// While there are IDs a request gets them at once. When the sequences are used up, requests wait in
/// the queue; those who would wait too long are sent away at once.
#[derive(Debug)]
pub(crate) struct Issuer {
    node: OnceLock<Node>,
    layout: Layout,
    /// IDs that a lane can give at once when nobody has asked for a while.
    burst: u64,
    limits: Limits,
    scopes: Vec<String>,
    /// Who leads a scope that is plain here and strict elsewhere, for each.
    disputes: Vec<ArcSwapOption<String>>,
    queue: Arc<Queue>,
    /// Ticks ahead of the clock that are left to others by those who wait, and by those who take what there is.
    left_ticks: u64,
    has_issued: AtomicBool,
    pub(crate) wait_stats: WaitStats,
}

/// How hard the sequences are used.
#[derive(Debug, Default)]
pub(crate) struct WaitStats {
    /// Requests that met a used-up sequence.
    pub(crate) exhausted: AtomicU64,
    /// How long requests waited for IDs in all, in nanoseconds.
    pub(crate) waited_nanos: AtomicU64,
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
            queue: Queue::new(layout, limits.max_waiting),
            left_ticks: ticks / LEFT,
            has_issued: AtomicBool::new(false),
            wait_stats: WaitStats::default(),
        }
    }

    /// Gives it the node, once.
    pub(crate) fn begin(&self, node: Node) {
        // There is one: nobody else gives it another.
        let _ = self.node.set(node);
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

    /// Whether an ID was ever issued or could have been.
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

    /// Notes who leads a scope elsewhere that is plain here. IDs of this node would break what is
    /// promised there.
    pub(crate) fn dispute(&self, Scope(place): Scope, leader: Option<String>) {
        self.disputes[place].store(leader.map(Arc::new));
    }

    /// A request for so many IDs now, within the limits, that waits as long as it may.
    pub(crate) fn issue_request(
        &self,
        count: Count,
        patience: Option<Duration>,
        flow: Flow,
    ) -> Result<IssueRequest, ApiError> {
        let (wanted, most) = (count.most(), self.limits.max_count);
        let is_too_many = matches!(count, Count::Exactly(wanted) if wanted > most);
        if wanted == 0 || is_too_many {
            return Err(ApiError::new(
                Reason::CountOutOfRange,
                format_args!("{wanted} IDs were asked for, and 1 to {most} are given at once"),
            ));
        }
        let patience = patience.map_or(self.limits.max_wait, |own| own.min(self.limits.max_wait));
        // One answer comes from one lane, whatever the others do.
        let own = time_for(&self.layout, u64::from(count.least()).saturating_sub(self.burst));
        if own > patience {
            return Err(too_late(format_args!("{wanted} IDs take {own:?}")));
        }
        Ok(IssueRequest { count: count.at_most(most), patience, flow })
    }

    /// As many IDs as wanted: at once if there are any and nobody waits, or else in turn.
    pub(crate) async fn issue(&self, issue_request: IssueRequest) -> Result<Issued, ApiError> {
        let node = self.node().ok_or_else(not_started)?;
        if self.queue.is_open_to(issue_request.flow.key) {
            let issued = match issue_request.count {
                Count::Exactly(count) => node.try_issue(count),
                // It takes all that there is, again and again.
                Count::UpTo(count) => node.try_up_to_leaving(count, self.left_ticks),
            };
            match issued {
                Ok(issued) => return Ok(issued),
                // It fills over several ticks, and has used up nothing of others.
                Err(NotIssued::NotReady(NotReady::BatchTooLarge { .. })) => {}
                Err(why) => match stop(&why, node) {
                    Stop::Refuse(refused) => return Err(refused.error),
                    Stop::Pause { .. } => self.wait_stats.count(),
                },
            }
        } else {
            self.wait_stats.count();
        }
        let began = boot_time();
        let outcome = self.queue.wait(&self.queued(node), issue_request, self.lanes_held()).await;
        self.wait_stats.waited(boot_time().saturating_sub(began));
        outcome.map_err(|refused| refused.error)
    }

    fn queued(&self, node: &Node) -> Lanes {
        Lanes { node: node.clone(), left_ticks: self.left_ticks }
    }

    /// Lanes that have a worker.
    fn lanes_held(&self) -> u64 {
        let held = self.node().map_or(0, |node| {
            node.watch().borrow().iter().filter(|lane| lane.grant.is_some()).count()
        });
        held.max(1) as u64
    }
}

impl WaitStats {
    fn count(&self) {
        // Relaxed, here and below: statistics.
        self.exhausted.fetch_add(1, Ordering::Relaxed);
    }

    fn waited(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.waited_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// The lanes of a node, for those who wait.
#[derive(Clone, Debug)]
struct Lanes {
    node: Node,
    left_ticks: u64,
}

impl Source for Lanes {
    fn add(&self, partly: &mut Option<Issued>, count: u32) -> Result<(), Stop> {
        let added = self.node.try_add_leaving(partly, count, self.left_ticks);
        added.map_err(|why| stop(&why, &self.node))
    }
}

/// Whether waiting helps, the look at a lease that was held up included.
pub(crate) fn stop(why: &NotIssued, node: &Node) -> Stop {
    let is_held_up = node.is_held_up(why);
    let told = match why {
        NotIssued::NotReady(NotReady::SequenceExhausted { .. }) => too_late(why),
        _ if is_held_up => too_late("the process was held up, and reads its lease again first"),
        _ => refusal(why, Some(node)),
    };
    match why {
        _ if is_held_up => Stop::Pause { after: LOOK_AGAIN, told },
        NotIssued::NotReady(why) if passes(*why) => {
            Stop::Pause { after: why.retry_after().unwrap_or_default(), told }
        }
        _ => Stop::Refuse(refusal(why, Some(node)).into()),
    }
}

const fn passes(why: NotReady) -> bool {
    matches!(
        why,
        NotReady::SequenceExhausted { .. }
            | NotReady::ClockBehind { .. }
            | NotReady::BatchTooLarge { .. }
    )
}

/// How many IDs one lane issues in a time.
fn ids_within(layout: &Layout, time: Duration) -> u64 {
    let ticks = time.as_millis() / u128::from(layout.tick_ms());
    u64::try_from(ticks).unwrap_or(u64::MAX).saturating_mul(layout.ids_per_tick())
}

/// What a future gives before a moment in boot time, if it does.
pub(crate) async fn before<T>(deadline: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(deadline.saturating_sub(boot_time()), future).await.ok()
}

fn not_started() -> ApiError {
    ApiError::new(Reason::NoWorker, "the node is starting, and has not reached its store yet")
        .retry_after(Duration::from_secs(1))
}
