//! The routes that decode and encode IDs.

use std::collections::BTreeMap;

use frazil_id::{Id, Layout, Part, Parts, rfc3339};
use frazil_wire::{ApiError, Decoded, Reason};
use hyper::Request;
use hyper::body::Incoming;
use serde::Deserialize;

use super::decode_body::{self, DecodeBody, DecodeRequest};
use crate::app::Shared;
use crate::encode::DECODED_PIECE;
use crate::http::answer::{self, Answer};
use crate::http::handle::Failed;
use crate::http::long::LongBody;
use crate::http::route::Route;
use crate::http::{body, query};
use crate::policy::access::Caller;
use crate::policy::decode_cost::charge;

/// IDs that are checked before others of the thread have their turn: some ten microseconds.
const IN_A_TURN: usize = 4096;

/// `GET /v1/ids/{id}`.
pub(crate) fn one(shared: &Shared, request: &Request<Incoming>) -> Result<Answer, ApiError> {
    let [name] = query::known(request.uri(), ["layout"])?;
    let layout = layout(shared, name.as_deref())?;
    let text = Route::find(request.uri().path()).map_or("", |(_, id)| id);
    let id = text.parse().map_err(malformed)?;
    Ok(answer::json(&decoded(id, &layout, &layout.to_string())?))
}

/// `POST /v1/ids:decode`.
pub(crate) async fn many(
    shared: &Shared,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Answer, Failed> {
    query::none(request.uri())?;
    let limits = shared.issuer.limits();
    let most = decode_body::bytes_max(limits);
    let mut reading = DecodeBody::new(limits);
    body::json_pieces(request, limits, most, |piece| reading.read(piece)).await?;
    let DecodeRequest { ids, layout: name } = reading.finish()?;
    let layout = layout(shared, name.as_deref())?;
    let left = charge(caller, ids.len()).map_err(|error| Failed::new(error, caller))?;
    check_all(&ids, &layout).await?;
    let is_long = ids.len() > DECODED_PIECE;
    let body = LongBody::decoded(ids, layout);
    let mut answer = match is_long {
        true => answer::long("application/json", body),
        false => answer::described("application/json", body.whole()),
    };
    if let Some(left) = left {
        answer::tell_quota(answer.headers_mut(), left);
    }
    Ok(answer)
}

/// Checks that all are IDs of the layout: once the answer has begun, it is too late to say so.
async fn check_all(ids: &[u64], layout: &Layout) -> Result<(), ApiError> {
    for (turn, some) in ids.chunks(IN_A_TURN).enumerate() {
        tokio::task::yield_now().await;
        for (place, id) in some.iter().enumerate() {
            let place = turn * IN_A_TURN + place;
            let checked = Id::from_u64(*id).parts(layout);
            checked.map_err(|error| decode_body::malformed(place, &error))?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with time or unix_ms, worker and sequence")]
struct Encode {
    time: Option<String>,
    unix_ms: Option<i64>,
    #[serde(default)]
    worker: u64,
    parts: Option<BTreeMap<String, u64>>,
    #[serde(default)]
    sequence: u64,
    layout: Option<String>,
}

/// `POST /v1/ids:encode`.
pub(crate) async fn encode(
    shared: &Shared,
    request: Request<Incoming>,
) -> Result<Answer, ApiError> {
    query::none(request.uri())?;
    let wanted: Encode = body::json(request, shared.issuer.limits()).await?;
    let layout = layout(shared, wanted.layout.as_deref())?;
    let tick = layout.tick_at(unix_ms(&wanted)?).map_err(invalid)?;
    let worker = worker(&wanted, &layout)?;
    let parts = Parts { tick, worker, sequence: wanted.sequence };
    let id = layout.encode(parts).map_err(invalid)?;
    Ok(answer::json(&Decoded::new(id, parts, &layout, &layout.to_string())))
}

fn unix_ms(wanted: &Encode) -> Result<i64, ApiError> {
    match (&wanted.time, wanted.unix_ms) {
        (None, Some(unix_ms)) => Ok(unix_ms),
        (Some(time), None) => {
            let instant: rfc3339::Instant = time.parse().map_err(invalid)?;
            Ok(instant.unix_ms())
        }
        _ => Err(invalid("give either time (RFC 3339) or unix_ms")),
    }
}

fn worker(wanted: &Encode, layout: &Layout) -> Result<u64, ApiError> {
    let Some(parts) = &wanted.parts else { return Ok(wanted.worker) };
    if wanted.worker != 0 {
        return Err(invalid("give either worker or parts"));
    }
    let names: Vec<&str> = layout.worker_parts().iter().map(Part::name).collect();
    if let Some(unknown) = parts.keys().find(|name| !names.contains(&name.as_str())) {
        let detail = format_args!("the layout's worker has no part {unknown:?}");
        return Err(invalid(detail));
    }
    let values = parts.iter().map(|(name, value)| (name.as_str(), *value));
    layout.join_worker(values).map_err(invalid)
}

/// The layout of a name or text; the node's own without one.
fn layout(shared: &Shared, name: Option<&str>) -> Result<Layout, ApiError> {
    match name {
        None => Ok(*shared.issuer.layout()),
        Some(name) => name.parse().map_err(|error| ApiError::new(Reason::UnknownLayout, error)),
    }
}

fn decoded<'a>(id: Id, layout: &'a Layout, text: &'a str) -> Result<Decoded<'a>, ApiError> {
    let parts = id.parts(layout).map_err(malformed)?;
    Ok(Decoded::new(id, parts, layout, text))
}

fn malformed(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::MalformedId, why)
}

fn invalid(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::InvalidArgument, why)
}
