//! The path of a request for IDs of a scope: to this node's lanes, its own leadership, or the leader elsewhere.

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil::election::Proof;
use frazil::{Issued, Node, NotScoped, Strict};
use frazil_wire::{ApiError, Reason};

use super::{Leader, Scopes, StrictScope};
use crate::app::Shared;
use crate::issuer::{Issuer, Scope, stop};
use crate::policy::admission::IssuedIds;
use crate::policy::queue::{self, Count, IssueRequest, Refused, Source, Stop};

/// Between two looks for a leader, when nothing is heard of a change.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// When a client should ask again for a scope that nobody leads: a hand-over takes a moment, and
/// after a crash as long as the TTL.
pub(super) const RETRY: Duration = Duration::from_millis(500);

/// Whom a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client.
    Client,
    /// Another node, which forwards it: it goes no further.
    Peer,
}

/// Issues IDs of a scope, or of none: as many as wanted.
pub(crate) async fn issue(
    shared: &Shared,
    scope: Option<Scope>,
    issue_request: IssueRequest,
    origin: Origin,
) -> Result<IssuedIds, ApiError> {
    let Some(strict) = scope.and_then(|scope| shared.scopes.find_strict(scope)) else {
        return shared.issuer.issue(issue_request).await.map(IssuedIds::from);
    };
    shared.scopes.issue(&shared.issuer, strict, issue_request, origin).await
}

/// One attempt of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) issue_request: IssueRequest,
    pub(super) deadline: Duration,
    origin: Origin,
    /// Whether another one failed before.
    pub(super) is_again: bool,
}

/// Why an attempt came to nothing, though another may not.
#[derive(Clone, Debug)]
pub(super) enum AttemptError {
    /// It ends here.
    Final(ApiError),
    /// Whoever led does not lead any more, or cannot be reached.
    Moved(ApiError),
}

impl Scopes {
    async fn issue(
        &self,
        issuer: &Issuer,
        strict: &Arc<StrictScope>,
        issue_request: IssueRequest,
        origin: Origin,
    ) -> Result<IssuedIds, ApiError> {
        // Nearly all requests at the leader end here.
        if let Some(issuer) = &*strict.local_issuer.load()
            && strict.queue.is_empty()
            && let Ok(issued) = at_once(issuer, issue_request.count)
        {
            return Ok(issued.into());
        }
        let deadline = boot_time().saturating_add(issue_request.patience);
        let mut leaders = strict.leader.subscribe();
        // What was wrong before the time was up says more than that it is up.
        let mut missed_before = None;
        loop {
            let leader = leaders.borrow_and_update().clone();
            let is_again = missed_before.is_some();
            let attempt = Attempt { issue_request, deadline, origin, is_again };
            let attempt = self.attempt(issuer, strict, leader.as_ref(), attempt);
            // Another leader while this one is asked: it may never answer.
            let moved = strict.moved_on(leader.as_ref().map(|leader| leader.token));
            let missed = tokio::select! {
                biased;
                attempt = attempt => match attempt {
                    Ok(issued) => return Ok(issued),
                    Err(AttemptError::Final(error)) if error.reason == Reason::Deadline => {
                        return Err(missed_before.unwrap_or(error));
                    }
                    Err(AttemptError::Final(error)) => return Err(error),
                    Err(AttemptError::Moved(error)) => error,
                },
                () = moved, if leader.is_some() => continue,
            };
            let left = deadline.saturating_sub(boot_time());
            // A node that forwards looks for the leader itself.
            if left.is_zero() || origin == Origin::Peer {
                return Err(missed);
            }
            missed_before = Some(missed);
            // A leader that failed is left alone for longer each time.
            let pause =
                strict.forwards.back_off_left().map_or(LOOK_AGAIN, |rest| rest.max(LOOK_AGAIN));
            let _ = tokio::time::timeout(left.min(pause), leaders.changed()).await;
        }
    }

    /// One attempt: here, if this node leads, or else at the leader.
    async fn attempt(
        &self,
        issuer: &Issuer,
        strict: &Arc<StrictScope>,
        leader: Option<&Leader>,
        attempt: Attempt,
    ) -> Result<IssuedIds, AttemptError> {
        let Attempt { issue_request, deadline, origin, .. } = attempt;
        if strict.is_led_here()
            && let Some(node) = issuer.node()
        {
            let patience = deadline.saturating_sub(boot_time());
            let source = LocalScope { strict: strict.clone(), node: node.clone() };
            let issued =
                strict.queue.wait(&source, IssueRequest { patience, ..issue_request }, 1).await;
            return issued.map(IssuedIds::from).map_err(AttemptError::from);
        }
        let none = |detail: String| {
            AttemptError::Moved(ApiError::new(Reason::NoLeader, detail).retry_after(RETRY))
        };
        let scope = &strict.name;
        let Some(leader) = leader else {
            return Err(none(format!("nobody leads the scope {scope} at this moment")));
        };
        if leader.is_here {
            let detail =
                format!("this node leads the scope {scope} in the store, and not yet here");
            return Err(none(detail));
        }
        let node = &leader.node;
        if origin == Origin::Peer {
            let detail = format!(
                "this node does not lead the scope {scope}, {node} does; a forwarded request is not \
                 forwarded again"
            );
            return Err(none(detail));
        }
        if leader.advertise.is_none() {
            return Err(none(format!("{node} leads the scope {scope} and has no address")));
        }
        self.forwarder.forward(issuer, strict, attempt).await
    }
}

/// A strict scope that this node leads, for as long as it does.
#[derive(Clone)]
struct LocalScope {
    strict: Arc<StrictScope>,
    node: Node,
}

impl Source for LocalScope {
    fn add(&self, partly: &mut Option<Issued>, count: u32) -> Result<(), Stop> {
        let Self { strict, node } = self;
        let Some(issuer) = strict.local_issuer.load_full() else { return Err(lost(strict)) };
        issuer.try_add(partly, count).map_err(|why| match why {
            NotScoped::NotIssued(why) => stop(&why, node),
            NotScoped::Floor { retry_after } => {
                let detail = format_args!(
                    "the times of the leader before have not passed yet in the scope {}",
                    strict.name
                );
                let told = ApiError::new(Reason::NoLeader, detail).retry_after(retry_after);
                Stop::Pause { after: retry_after, told }
            }
            NotScoped::Horizon => {
                let detail = format_args!("the leadership of {} was not renewed", strict.name);
                let told = ApiError::new(Reason::HorizonReached, detail).retry_after(RETRY);
                Stop::Pause { after: queue::LOOK_AGAIN, told }
            }
            _ => lost(strict),
        })
    }
}

fn at_once(issuer: &Strict<Proof>, count: Count) -> Result<Issued, NotScoped> {
    match count {
        Count::Exactly(count) => issuer.try_fill(&mut None, count),
        Count::UpTo(count) => issuer.try_up_to(count),
    }
}

fn lost(strict: &StrictScope) -> Stop {
    let detail = format_args!("this node does not lead the scope {} any more", strict.name);
    let error = ApiError::new(Reason::NoLeader, detail).retry_after(RETRY);
    Stop::Refuse(Refused { error, may_succeed_elsewhere: true })
}

impl From<Refused> for AttemptError {
    fn from(Refused { error, may_succeed_elsewhere }: Refused) -> Self {
        if may_succeed_elsewhere { Self::Moved(error) } else { Self::Final(error) }
    }
}
