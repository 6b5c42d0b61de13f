//! From a request for Ids of a scope to whoever issues them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use frazil::coord::Token;
use frazil::coord::time::boot_time;
use frazil::election::Proof;
use frazil::{Batch, Issued, NotScoped, Strict};
use frazil_wire::{ApiError, Reason};

use super::{Leader, Post, Scopes};
use crate::app::Shared;
use crate::issuer::{Issuer, Scope, Want, before, too_late};
use crate::peers::{Gift, NoGift, Wish};

/// Between two looks for a leader, when nothing is heard of a change.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// When a client should ask again for a scope that nobody leads: a hand-over takes a moment, and
/// after a crash as long as the TTL.
const RETRY: Duration = Duration::from_millis(500);

/// Whom a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client.
    Client,
    /// Another node, which forwards it: it goes no further.
    Peer,
}

/// Ids, and where they were issued.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) issued: Issued,
    /// `None`: here.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// Another node.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pub(crate) node: String,
    pub(crate) region: Option<String>,
}

/// Issues Ids of a scope, or of none: exactly as many as wanted.
pub(crate) async fn issue(
    shared: &Shared,
    scope: Option<Scope>,
    want: Want,
    origin: Origin,
) -> Result<Answered, ApiError> {
    let Some(post) = scope.and_then(|scope| shared.scopes.post(scope)) else {
        return shared.issuer.issue(want).await.map(here);
    };
    shared.scopes.issue(&shared.issuer, post, want, origin).await
}

/// From one to as many Ids as wanted. A strict scope gives as many, however long its lane takes.
pub(crate) async fn issue_some(
    shared: &Shared,
    scope: Option<Scope>,
    want: Want,
) -> Result<Answered, ApiError> {
    if scope.is_some_and(|scope| shared.scopes.post(scope).is_some()) {
        let most = u32::try_from(shared.issuer.layout().ids_per_tick()).unwrap_or(u32::MAX);
        let want = Want { count: want.count.min(most), ..want };
        return issue(shared, scope, want, Origin::Client).await;
    }
    shared.issuer.issue_some(want).await.map(here)
}

const fn here(issued: Issued) -> Answered {
    Answered { issued, elsewhere: None }
}

/// Why an attempt came to nothing, though another may not.
enum Miss {
    /// It ends here.
    Final(ApiError),
    /// Whoever led does not lead any more, or cannot be reached.
    Moved(ApiError),
}

impl Scopes {
    async fn issue(
        &self,
        issuer: &Issuer,
        post: &Post,
        want: Want,
        origin: Origin,
    ) -> Result<Answered, ApiError> {
        // Nearly all requests at the leader end here.
        // Relaxed: whoever overtakes by a moment takes nothing that was promised.
        if let Some(seat) = &*post.seat.load()
            && post.waiting.load(Ordering::Relaxed) == 0
            && let Ok(issued) = seat.try_fill(&mut None, want.count)
        {
            return Ok(here(issued));
        }
        let deadline = boot_time().saturating_add(want.patience);
        let mut leaders = post.leader.subscribe();
        // What was wrong before the time was up says more than that it is up.
        let mut missed_before = None;
        loop {
            let leader = leaders.borrow_and_update().clone();
            let attempt = self.attempt(issuer, post, leader.as_ref(), want, deadline, origin);
            let moved = async {
                // Another leader while this one is asked: it may never answer.
                let token = leader.as_ref().map(|leader| leader.token);
                let is_other = |now: &Option<Leader>| {
                    now.is_some() && now.as_ref().map(|leader| leader.token) != token
                };
                // The sender lives as long as the post.
                let _ = post.leader.subscribe().wait_for(is_other).await;
            };
            let missed = tokio::select! {
                biased;
                attempt = attempt => match attempt {
                    Ok(answered) => return Ok(answered),
                    Err(Miss::Final(error)) if error.reason == Reason::Deadline => {
                        return Err(missed_before.unwrap_or(error));
                    }
                    Err(Miss::Final(error)) => return Err(error),
                    Err(Miss::Moved(error)) => error,
                },
                () = moved, if leader.is_some() => continue,
            };
            let left = deadline.saturating_sub(boot_time());
            // A node that forwards looks for the leader itself.
            if left.is_zero() || origin == Origin::Peer {
                return Err(missed);
            }
            missed_before = Some(missed);
            let _ = tokio::time::timeout(left.min(LOOK_AGAIN), leaders.changed()).await;
        }
    }

    /// One attempt: here, if this node leads, or else at the leader.
    async fn attempt(
        &self,
        issuer: &Issuer,
        post: &Post,
        leader: Option<&Leader>,
        want: Want,
        deadline: Duration,
        origin: Origin,
    ) -> Result<Answered, Miss> {
        if let Some(seat) = post.seat.load_full() {
            return locally(issuer, post, &seat, want, deadline).await.map(here);
        }
        let none = |detail: String| {
            Miss::Moved(ApiError::new(Reason::NoLeader, detail).retry_after(RETRY))
        };
        let scope = &post.name;
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
        let Some(base) = &leader.advertise else {
            return Err(none(format!("{node} leads the scope {scope} and has no address")));
        };
        self.forward(issuer, post, base, want, deadline).await
    }

    async fn forward(
        &self,
        issuer: &Issuer,
        post: &Post,
        base: &str,
        want: Want,
        deadline: Duration,
    ) -> Result<Answered, Miss> {
        let patience = deadline.saturating_sub(boot_time());
        let wish = Wish { scope: &post.name, count: want.count, patience };
        let Some(asked) = before(deadline, self.peers.ask(base, wish)).await else {
            return Err(Miss::Final(too_late(format_args!("{base} did not answer in time"))));
        };
        match asked {
            Ok(gift) => received(issuer, gift, want.count).map_err(Miss::Final),
            Err(NoGift::Unreachable(why)) => {
                tracing::warn!(
                    scope = post.name,
                    leader = base,
                    why,
                    "the leader of a scope cannot be reached from this node"
                );
                let detail = format!("the leader of the scope {}, {why}", post.name);
                Err(Miss::Moved(ApiError::new(Reason::NoLeader, detail).retry_after(RETRY)))
            }
            Err(NoGift::Refused(error)) => Err(refused(base, error)),
        }
    }
}

/// Ids that another node sent.
fn received(issuer: &Issuer, gift: Gift, count: u32) -> Result<Answered, ApiError> {
    let Gift { ids, node, region, token } = gift;
    let batch = Batch::from_ids(issuer.layout(), ids).filter(|batch| batch.len() == count as usize);
    let parts = batch.as_ref().and_then(Batch::ends).map(|(id, _)| id.parts(issuer.layout()));
    let (Some(batch), Some(Ok(parts))) = (batch, parts) else {
        let detail = format_args!("{node} sent Ids that are not what was asked for");
        return Err(ApiError::new(Reason::Internal, detail));
    };
    let worker = u32::try_from(parts.worker).unwrap_or(u32::MAX);
    let issued = Issued::elsewhere(batch, worker, Token(token));
    Ok(Answered { issued, elsewhere: Some(Elsewhere { node, region }) })
}

/// What the leader's refusal means for whoever asked this node.
fn refused(base: &str, error: ApiError) -> Miss {
    match error.reason {
        Reason::NoLeader | Reason::Draining => Miss::Moved(error),
        // It is this node that was not let in, and not its client.
        Reason::Unauthenticated | Reason::Forbidden | Reason::QuotaExceeded => {
            tracing::error!(leader = base, %error, "the leader of a scope refuses this node's key");
            let detail = format_args!(
                "the leader, {base}, refuses this node's key: check --peer-key-file ({error})"
            );
            Miss::Final(ApiError::new(Reason::NoLeader, detail).retry_after(RETRY))
        }
        _ => Miss::Final(error),
    }
}

/// Issues by this node, which led a moment ago.
async fn locally(
    issuer: &Issuer,
    post: &Post,
    seat: &Arc<Strict<Proof>>,
    want: Want,
    deadline: Duration,
) -> Result<Issued, Miss> {
    let _place = Place::join(issuer, post).map_err(Miss::Final)?;
    let turn = before(deadline, post.turns.acquire()).await;
    let _turn = turn.ok_or_else(|| Miss::Final(too_late("others were first")))?;
    let mut partly = None;
    loop {
        match seat.try_fill(&mut partly, want.count) {
            Ok(issued) => return Ok(issued),
            Err(NotScoped::NotIssued(why)) => {
                issuer.pause(&why, deadline).await.map_err(Miss::Final)?;
            }
            Err(NotScoped::Floor { retry_after }) => {
                let left = deadline.saturating_sub(boot_time());
                if retry_after > left {
                    let detail = format_args!(
                        "the times of the leader before have not passed yet in the scope {}",
                        post.name
                    );
                    let error = ApiError::new(Reason::NoLeader, detail);
                    return Err(Miss::Final(error.retry_after(retry_after)));
                }
                tokio::time::sleep(retry_after.min(LOOK_AGAIN)).await;
            }
            Err(NotScoped::Horizon) => {
                if boot_time() >= deadline {
                    let detail = format_args!("the leadership of {} was not renewed", post.name);
                    let error = ApiError::new(Reason::HorizonReached, detail);
                    return Err(Miss::Final(error.retry_after(RETRY)));
                }
                tokio::time::sleep(LOOK_AGAIN.min(deadline.saturating_sub(boot_time()))).await;
            }
            Err(_) => return Err(lost(post)),
        }
    }
}

fn lost(post: &Post) -> Miss {
    let detail = format_args!("this node does not lead the scope {} any more", post.name);
    Miss::Moved(ApiError::new(Reason::NoLeader, detail).retry_after(RETRY))
}

/// A place among those that wait for Ids of a scope.
struct Place<'a>(&'a Post);

impl<'a> Place<'a> {
    fn join(issuer: &Issuer, post: &'a Post) -> Result<Self, ApiError> {
        let place = Self(post);
        // Relaxed: a limit that may be missed by those who come at the same moment.
        let before = post.waiting.fetch_add(1, Ordering::Relaxed);
        if before >= issuer.limits().max_waiting {
            let detail = format_args!("{before} requests wait for Ids of {} already", post.name);
            return Err(ApiError::new(Reason::Overloaded, detail).retry_after(RETRY));
        }
        Ok(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
