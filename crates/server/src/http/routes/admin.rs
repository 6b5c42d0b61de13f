//! The routes of administrators.

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::{Found, Group, Presence};
use frazil::{Moved, Node, NotRotated};
use frazil_wire::{ApiError, Drained, Reason, Rotated};
use hyper::Request;
use hyper::body::Incoming;

use crate::app::Shared;
use crate::app::shutdown;
use crate::http::answer::{self, Answer};
use crate::http::route::Route;
use crate::http::{body, query};
use crate::net::listener::Remote;
use crate::node::condition::NodeState;
use crate::policy::access::Caller;
use crate::policy::audit;

/// When to try again what workers or the store are missing for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Who asks, from where and with which key.
type AdminCaller<'a> = (&'a Remote, &'a Caller);

/// `POST /v1/node:drain`: takes the node out of service, and answers when its workers are released.
pub(crate) async fn drain(
    shared: &Arc<Shared>,
    admin: AdminCaller<'_>,
    request: Request<Incoming>,
) -> Result<Answer, ApiError> {
    query::none(request.uri())?;
    body::none(request.into_body(), shared.issuer.limits()).await?;
    // It goes on if the client does not wait for it, and so it is told of first.
    audit(admin, "drain", &"begins");
    let retiring = shared.shutdown.connections.spawn(shutdown::retire(shared.clone()));
    let released = retiring.await.map_err(|error| ApiError::new(Reason::Internal, error))?;
    audit(admin, "drain", &format_args!("released {released:?}"));
    Ok(answer::json(&Drained::new(&shared.name, NodeState::Draining.word(), released)))
}

/// `POST /v1/node:rotate`: moves the node to other workers; IDs are issued meanwhile.
pub(crate) async fn rotate(
    shared: &Arc<Shared>,
    admin: AdminCaller<'_>,
    request: Request<Incoming>,
) -> Result<Answer, ApiError> {
    query::none(request.uri())?;
    body::none(request.into_body(), shared.issuer.limits()).await?;
    moved(shared, admin, None).await
}

/// `POST /v1/workers/{worker}:release[?token=T]`: the node gives the worker back, and takes another
/// one for it. With a token only if the lease is still that one.
pub(crate) async fn release(
    shared: &Arc<Shared>,
    admin: AdminCaller<'_>,
    request: Request<Incoming>,
) -> Result<Answer, ApiError> {
    let text = Route::find(request.uri().path()).map_or("", |(_, worker)| worker);
    let worker: u32 = text.parse().map_err(|_| {
        ApiError::new(Reason::InvalidArgument, "a worker is a whole number: /v1/workers/7:release")
    })?;
    let [token] = query::known(request.uri(), ["token"])?;
    let token = token.map(|token| token.parse()).transpose().map_err(|_| {
        ApiError::new(Reason::InvalidArgument, "a token is a whole number, as workers ls shows it")
    })?;
    let node = node(shared)?;
    let lanes = node.info().lanes;
    let mut grants = lanes.iter().filter_map(|lane| lane.status.grant);
    let Some(grant) = grants.find(|grant| grant.worker == worker) else {
        return Err(not_here(node, worker).await);
    };
    if token.is_some_and(|token: u64| token != grant.token.0) {
        let detail = format_args!("worker {worker} is held with the token {}", grant.token);
        return Err(ApiError::new(Reason::TokenStale, detail));
    }
    body::none(request.into_body(), shared.issuer.limits()).await?;
    moved(shared, admin, Some(worker)).await
}

async fn moved(
    shared: &Arc<Shared>,
    admin: AdminCaller<'_>,
    worker: Option<u32>,
) -> Result<Answer, ApiError> {
    let patience = shared.issuer.limits().request_timeout;
    let outcome = node(shared)?.rotate(worker, patience).await;
    let verb = if worker.is_some() { "release" } else { "rotate" };
    match &outcome {
        Ok(moved) => {
            let ways: Vec<String> =
                moved.iter().map(|Moved { from, to, .. }| format!("{from} to {to}")).collect();
            audit(admin, verb, &format_args!("moved from {}", ways.join(", ")));
        }
        Err(why) => audit(admin, verb, why),
    }
    let moved = outcome.map_err(|why| {
        let error = ApiError::new(
            match why {
                NotRotated::NotHeld => Reason::NotFound,
                NotRotated::Ended => Reason::Draining,
                // Whatever else it is, no other worker is to be had.
                _ => Reason::NoWorker,
            },
            why,
        );
        if error.reason == Reason::NotFound { error } else { error.retry_after(LOOK_AGAIN) }
    })?;
    let moved = moved.into_iter().map(|Moved { from, to, .. }| [from, to].into()).collect();
    Ok(answer::json(&Rotated::new(&shared.name, moved)))
}

fn audit((remote, caller): AdminCaller<'_>, verb: &str, outcome: &dyn std::fmt::Display) {
    audit::log_act(remote, caller.key().map(|key| &**key), verb, outcome);
}

fn node(shared: &Shared) -> Result<&Node, ApiError> {
    shared.issuer.node().ok_or_else(|| {
        let detail = "the node has not reached its store yet";
        ApiError::new(Reason::NoWorker, detail).retry_after(LOOK_AGAIN)
    })
}

/// Who holds a worker that this node does not hold.
async fn not_here(node: &Node, worker: u32) -> ApiError {
    let unavailable =
        |error| ApiError::new(Reason::StoreUnavailable, error).retry_after(LOOK_AGAIN);
    let entries = match node.store().list(Group::Workers).await {
        Ok(entries) => entries,
        Err(error) => return unavailable(error),
    };
    let held = entries.iter().find(|entry| {
        entry.slot.number() == Some(worker) && matches!(entry.presence, Presence::Held { .. })
    });
    match held.map(|entry| &entry.found) {
        Some(Found::Known(record)) => {
            let at = record.info.get("advertise").map(|at| format!(" at {at}")).unwrap_or_default();
            let detail = format_args!("worker {worker} is held by {}{at}", record.holder);
            ApiError::new(Reason::HeldByOther, detail)
        }
        _ => ApiError::new(Reason::NotFound, format_args!("nobody holds worker {worker}")),
    }
}
