//! What administrators do.

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::{Found, Group, Presence};
use frazil::{Moved, Node, NotRotated};
use frazil_wire::{self as wire, ApiError, Drained, Reason, Rotated};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, ORIGIN};

use super::answer::{self, Answer};
use super::route::Route;
use super::{body, query};
use crate::access::Caller;
use crate::app::Shared;
use crate::condition::NodeState;
use crate::drain;

/// When to try again what workers or the store are missing for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// `POST /v1/node:drain`: takes the node out of service, and answers when its workers are released.
pub(super) async fn drain(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Answer, ApiError> {
    query::none(request.uri())?;
    body::none(request.into_body(), shared.issuer.limits()).await?;
    // It goes on if the client does not wait for it, and so it is told of first.
    audit(caller, "drain", &"begins");
    let retiring = shared.going.connections.spawn(drain::retire(shared.clone()));
    let released = retiring.await.map_err(|error| ApiError::new(Reason::Internal, error))?;
    audit(caller, "drain", &format_args!("released {released:?}"));
    let (node, state) = (shared.name.clone(), NodeState::Draining.word().to_owned());
    Ok(answer::json(&Drained { node, state, released }))
}

/// `POST /v1/node:rotate`: moves the node to other workers; Ids are issued meanwhile.
pub(super) async fn rotate(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Answer, ApiError> {
    query::none(request.uri())?;
    body::none(request.into_body(), shared.issuer.limits()).await?;
    moved(shared, caller, None).await
}

/// `POST /v1/workers/{worker}:release[?token=T]`: the node gives the worker back, and takes another
/// one for it. With a token only if the lease is still that one.
pub(super) async fn release(
    shared: &Arc<Shared>,
    caller: &Caller,
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
    moved(shared, caller, Some(worker)).await
}

async fn moved(
    shared: &Arc<Shared>,
    caller: &Caller,
    worker: Option<u32>,
) -> Result<Answer, ApiError> {
    let patience = shared.issuer.limits().request_timeout;
    let outcome = node(shared)?.rotate(worker, patience).await;
    let verb = if worker.is_some() { "release" } else { "rotate" };
    match &outcome {
        Ok(moved) => {
            let ways: Vec<String> =
                moved.iter().map(|Moved { from, to }| format!("{from} to {to}")).collect();
            audit(caller, verb, &format_args!("moved from {}", ways.join(", ")));
        }
        Err(why) => audit(caller, verb, why),
    }
    let moved = outcome.map_err(|why| {
        let error = ApiError::new(
            match why {
                NotRotated::NotHeld => Reason::NotFound,
                NotRotated::Ended => Reason::Draining,
                NotRotated::NoOther(_) | NotRotated::Refused(_) | NotRotated::Forked => {
                    Reason::NoWorker
                }
            },
            why,
        );
        if error.reason == Reason::NotFound { error } else { error.retry_after(LOOK_AGAIN) }
    })?;
    let moved = moved.into_iter().map(|Moved { from, to }| wire::Moved { from, to }).collect();
    Ok(answer::json(&Rotated { node: shared.name.clone(), moved }))
}

/// Logs who did what, and what came of it. Every time: see the log's rules for this target.
fn audit(caller: &Caller, verb: &str, outcome: &dyn std::fmt::Display) {
    tracing::info!(
        target: "frazil_server::audit",
        by = caller.name(),
        key = caller.id(),
        verb,
        %outcome,
        "the node was told to {verb}"
    );
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

/// Without keys, a page of somebody else's in the operator's browser must not be able to do this.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|digit| digit.is_ascii_digit()) { name } else { host }
    });
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_own = bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok();
    let is_same = text(ORIGIN)
        .is_none_or(|origin| origin.split_once("://").is_some_and(|(_, origin)| origin == host));
    if is_own && is_same {
        return Ok(());
    }
    tracing::warn!("a page of another origin asked for administration, and was refused");
    let detail = "a page of another origin asks for this: without keys it is refused";
    Err(ApiError::new(Reason::Forbidden, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_own_pages_administer_without_a_key() {
        let check = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            check_origin(&headers).is_ok()
        };
        for (host, origin) in [
            ("127.0.0.1:7783", None),
            ("localhost:7783", Some("http://localhost:7783")),
            ("[::1]:7783", Some("https://[::1]:7783")),
            ("[::1]", None),
            ("localhost", None),
        ] {
            assert!(check(host, origin), "{host} {origin:?}");
        }
        for (host, origin) in [
            ("127.0.0.1:7783", Some("https://evil.example")),
            ("127.0.0.1:7783", Some("null")),
            // A name that was made to lead here.
            ("evil.example:7783", Some("http://evil.example:7783")),
            ("evil.example", None),
            ("", None),
        ] {
            assert!(!check(host, origin), "{host} {origin:?}");
        }
    }
}
