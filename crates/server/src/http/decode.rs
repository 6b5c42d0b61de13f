//! Taking Ids apart and putting them together.

use std::collections::BTreeMap;

use frazil_id::{Id, Layout, Part, Parts, rfc3339};
use frazil_wire::{ApiError, Decoded, Reason};
use hyper::Request;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};

use super::answer::{self, Answer};
use super::route::Route;
use super::{body, query};
use crate::app::Shared;

/// `GET /v1/ids/{id}`.
pub(super) fn one(shared: &Shared, request: &Request<Incoming>) -> Result<Answer, ApiError> {
    let [name] = query::known(request.uri(), ["layout"])?;
    let layout = layout(shared, name.as_deref())?;
    let text = Route::find(request.uri().path()).map_or("", |(_, id)| id);
    let id = text.parse().map_err(malformed)?;
    Ok(answer::json(&decoded(id, &layout, &layout.to_string())?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with ids")]
struct Many {
    ids: Vec<IdText>,
    layout: Option<String>,
}

/// An Id as clients write it: in a string, or as a number if their numbers are wide enough.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an Id in a string")]
enum IdText {
    Text(String),
    Number(u64),
}

#[derive(Serialize)]
struct AllDecoded<'a> {
    decoded: Vec<Decoded<'a>>,
}

/// `POST /v1/ids:decode`.
pub(super) async fn many(shared: &Shared, request: Request<Incoming>) -> Result<Answer, ApiError> {
    query::none(request.uri())?;
    let limits = shared.issuer.limits();
    let many: Many = body::json(request, limits).await?;
    if many.ids.len() > limits.max_count as usize {
        let detail = format_args!("at most {} Ids are taken apart at once", limits.max_count);
        return Err(ApiError::new(Reason::CountOutOfRange, detail));
    }
    let layout = layout(shared, many.layout.as_deref())?;
    let text = layout.to_string();
    let each = many.ids.iter().enumerate().map(|(place, id)| {
        let id = match id {
            IdText::Number(id) => Ok(Id::from_u64(*id)),
            IdText::Text(text) => text.parse().map_err(malformed),
        };
        id.and_then(|id| decoded(id, &layout, &text)).map_err(|error| ApiError {
            detail: format!("ids[{place}]: {}", error.detail),
            ..error
        })
    });
    Ok(answer::json(&AllDecoded { decoded: each.collect::<Result<_, _>>()? }))
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
pub(super) async fn encode(
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
