//! `POST /v1/ids`.

use bytes::Bytes;
use frazil::Issued;
use frazil_wire::ApiError;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap};

use super::accept::Form;
use super::answer::{Answer, described, long, tell_quota};
use super::handle::Failed;
use super::long::{Around, LongBody};
use super::{body, query};
use crate::access::Caller;
use crate::app::Shared;
use crate::encode::{BEGINNING, push_ids};
use crate::issuer::parse_count;
use crate::metrics::Protocol;

/// More Ids than these are not written at once.
const LONG: usize = 2048;

pub(super) async fn issue(
    shared: &Shared,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Answer, Failed> {
    let (head, body) = request.into_parts();
    body::none(body, shared.issuer.limits()).await?;
    let form = form(&head.headers)?;
    let [count, scope] = query::known(&head.uri, ["count", "scope"])?;
    let count = count.map_or(Ok(1), |count| parse_count(count.as_bytes()))?;
    let scope = shared.issuer.scope(scope.as_deref().unwrap_or_default())?;
    let name = scope.map(|scope| shared.issuer.scopes()[scope.0].as_str());
    let want = shared.issuer.want(count, None)?;
    caller.check_scope(name)?;
    let left = caller.take(count).map_err(|error| Failed::quota(error, caller))?;
    let issued = shared.issuer.issue(want).await?;
    shared.metrics.requests.issued(Protocol::Http, scope, count.into());
    shared.metrics.requests.batch(count.into());
    let mut answer = match issued.batch.len() > LONG {
        false => described(form.content_type(), written(shared, &issued, form, name)),
        true => long(form.content_type(), long_body(shared, &issued, form, name)),
    };
    if let Some(left) = left {
        tell_quota(answer.headers_mut(), left);
    }
    Ok(answer)
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
fn long_body(shared: &Shared, issued: &Issued, form: Form, scope: Option<&str>) -> LongBody {
    let batch = &issued.batch;
    match form {
        Form::Json => {
            let mut end = Vec::new();
            shared.frame.write_end(&mut end, issued, scope);
            let around = Around::Text { before: b"\"", after: b"\",", cut: 1 };
            LongBody::new(BEGINNING, batch, around, end)
        }
        Form::Text => {
            let around = Around::Text { before: b"", after: b"\n", cut: 0 };
            LongBody::new(b"", batch, around, Vec::new())
        }
        Form::Binary => LongBody::new(b"", batch, Around::Binary, Vec::new()),
    }
}

fn written(shared: &Shared, issued: &Issued, form: Form, scope: Option<&str>) -> Bytes {
    let batch = &issued.batch;
    let bytes = match form {
        Form::Json => shared.frame.write(issued, scope),
        Form::Text => {
            let mut out = Vec::new();
            push_ids(&mut out, batch, b"", b"\n");
            out
        }
        Form::Binary => batch.iter().flat_map(|id| id.to_u64().to_be_bytes()).collect(),
    };
    bytes.into()
}
