//! HTTP answers.

use bytes::Bytes;
use frazil_wire::ApiError;
use http_body_util::{Either, Full};
use hyper::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::long::LongBody;
use crate::policy::keys::QuotaLeft;

pub(super) type Answer = Response<Either<Full<Bytes>, LongBody>>;

/// A body of a kind. Nothing that a node says may be kept: it is new every time.
pub(super) fn described(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    with_body(content_type, Either::Left(Full::new(body.into())))
}

/// The same for an answer with many IDs.
pub(super) fn long(content_type: &'static str, body: LongBody) -> Answer {
    with_body(content_type, Either::Right(body))
}

fn with_body(content_type: &'static str, body: Either<Full<Bytes>, LongBody>) -> Answer {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

pub(super) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = described("text/plain; charset=utf-8", body);
    *answer.status_mut() = status;
    answer
}

pub(super) fn json(body: &impl Serialize) -> Answer {
    // These types have no keys or numbers that JSON cannot write.
    described("application/json", serde_json::to_vec(body).unwrap_or_default())
}

/// A failure as RFC 9457 writes it.
pub(super) fn problem(error: &ApiError) -> Answer {
    let body = serde_json::to_vec(&error.to_problem()).unwrap_or_default();
    let mut answer = described("application/problem+json", body);
    *answer.status_mut() = StatusCode::from_u16(error.reason.http_status())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(ms) = error.retry_after_ms() {
        // The header counts in whole seconds; the body knows better.
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
    }
    answer
}

/// What is left of a key's quota, as the IETF's draft of RateLimit fields writes it.
pub(super) fn tell_quota(headers: &mut HeaderMap, left: QuotaLeft) {
    let QuotaLeft { per_second, remaining } = left;
    let fields = [
        ("ratelimit-policy", format!("\"ids\";q={per_second};w=1")),
        ("ratelimit", format!("\"ids\";r={remaining};t=1")),
    ];
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// What HEAD gets: everything but the body.
pub(super) fn without_body(answer: Answer) -> Answer {
    use hyper::body::Body;
    let length = answer.body().size_hint().exact().unwrap_or(0);
    let (mut head, _) = answer.into_parts();
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    Response::from_parts(head, Either::Left(Full::default()))
}
