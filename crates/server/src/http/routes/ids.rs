//! `POST /v1/ids`.

use std::time::Duration;

use bytes::Bytes;
use frazil_wire::{ApiError, Reason};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};

use crate::app::Shared;
use crate::cluster::peers;
use crate::cluster::scopes::Origin;
use crate::encode::{BEGINNING, JsonFrame, QUOTES, push_binary_run, push_ids};
use crate::http::accept::Form;
use crate::http::answer::{Answer, described, long, tell_quota};
use crate::http::handle::Failed;
use crate::http::long::{Around, LongBody};
use crate::http::{body, nonce, query};
use crate::issuer::parse_count;
use crate::metrics::Protocol;
use crate::net::listener::Remote;
use crate::policy::access::Caller;
use crate::policy::admission::{IdsRequest, IssuedIds};
use crate::policy::queue::Count;

/// More IDs than these are not written at once.
const LONG: usize = 2048;

pub(crate) async fn issue(
    shared: &Shared,
    remote: &Remote,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Answer, Failed> {
    let (head, body) = request.into_parts();
    body::none(body, shared.issuer.limits()).await?;
    nonce::of(&head.headers)?;
    let form = form(&head.headers)?;
    let [count, scope] = query::known(&head.uri, ["count", "scope"])?;
    let count = count.map_or(Ok(1), |count| parse_count(count.as_bytes()))?;
    let (origin, patience) = origin(&head.headers)?;
    // What a node that forwards compares with the store. A request of one is answered by the term that
    // there is when it comes, or not at all.
    let term = shared.scopes.leader_token(scope.as_deref().unwrap_or_default());
    let (count, scope) = (Count::Exactly(count), scope.as_deref().unwrap_or_default());
    let ask = IdsRequest {
        count,
        is_run: false,
        scope,
        patience,
        waits_for_quota: false,
        origin,
        protocol: Protocol::Http,
    };
    let issued = shared.issue(remote, caller, ask).await;
    let issued = issued.map_err(|error| Failed::new(error, caller))?;
    let name = Some(scope).filter(|name| !name.is_empty());
    let others;
    let frame = match &issued.issuing_node {
        None => &shared.frame,
        Some(at) => {
            let layout = *shared.issuer.layout();
            others = JsonFrame::new(&at.node, layout, at.region.as_deref());
            &others
        }
    };
    let mut answer = match issued.batch.len() > LONG {
        false => described(form.content_type(), written(frame, &issued, form, name)),
        true => long(form.content_type(), long_body(frame, &issued, form, name)),
    };
    // JSON has it in the body, where clients look.
    if form != Form::Json || origin == Origin::Peer {
        tell_source(answer.headers_mut(), shared, &issued);
    }
    if let (Origin::Peer, Some(token)) = (origin, term) {
        answer.headers_mut().insert(peers::LEADER_TOKEN, HeaderValue::from(token.0));
    }
    if let Some(left) = issued.left {
        tell_quota(answer.headers_mut(), left);
    }
    Ok(answer)
}

/// Whom a request came from, and how long that one waits, if it says so.
fn origin(headers: &HeaderMap) -> Result<(Origin, Option<Duration>), ApiError> {
    if !headers.contains_key(peers::FORWARDED) {
        return Ok((Origin::Client, None));
    }
    let patience = match peers::text(headers, &peers::PATIENCE) {
        None => None,
        Some(text) => Some(text.parse().map(Duration::from_millis).map_err(|_| {
            let detail = format_args!("{} is a number of milliseconds", peers::PATIENCE);
            ApiError::new(Reason::InvalidArgument, detail)
        })?),
    };
    Ok((Origin::Peer, patience))
}

/// Who issued the IDs, and the token of the lease.
fn tell_source(headers: &mut HeaderMap, shared: &Shared, issued: &IssuedIds) {
    let (node, region) = match &issued.issuing_node {
        None => (&shared.name, shared.region.as_ref()),
        Some(at) => (&at.node, at.region.as_ref()),
    };
    for (name, value) in [(peers::NODE, Some(node)), (peers::REGION, region)] {
        if let Some(Ok(value)) = value.map(|value| HeaderValue::from_bytes(value.as_bytes())) {
            headers.insert(name, value);
        }
    }
    headers.insert(peers::TOKEN, HeaderValue::from(issued.token.0));
}

/// Several headers are as good as one list.
fn form(headers: &HeaderMap) -> Result<Form, ApiError> {
    let mut all = headers.get_all(ACCEPT).iter().map(|one| one.to_str().unwrap_or("unreadable"));
    match (all.next(), all.next()) {
        (first, None) => Form::accepted(first),
        (Some(first), Some(second)) => {
            let list: Vec<&str> = [first, second].into_iter().chain(all).collect();
            Form::accepted(Some(&list.join(",")))
        }
        (None, Some(_)) => Form::accepted(None),
    }
}

/// An answer whose bytes are made as they are sent.
fn long_body(frame: &JsonFrame, issued: &IssuedIds, form: Form, scope: Option<&str>) -> LongBody {
    let batch = &issued.batch;
    match form {
        Form::Json => {
            let mut end = Vec::new();
            frame.write_end(&mut end, issued, scope);
            let (before, after) = QUOTES;
            let around = Around::Text { before, after, cut: 1 };
            LongBody::new(BEGINNING, batch, around, end)
        }
        Form::Text => {
            let around = Around::Text { before: b"", after: b"\n", cut: 0 };
            LongBody::new(b"", batch, around, Vec::new())
        }
        Form::Binary => LongBody::new(b"", batch, Around::Binary, Vec::new()),
    }
}

fn written(frame: &JsonFrame, issued: &IssuedIds, form: Form, scope: Option<&str>) -> Bytes {
    let batch = &issued.batch;
    let bytes = match form {
        Form::Json => frame.write(issued, scope),
        Form::Text => {
            let mut out = Vec::new();
            push_ids(&mut out, batch, b"", b"\n");
            out
        }
        Form::Binary => {
            let mut out = Vec::with_capacity(batch.len() * size_of::<u64>());
            batch.runs().for_each(|run| push_binary_run(&mut out, &run));
            out
        }
    };
    bytes.into()
}
