//! `POST /v1/ids`.

use bytes::Bytes;
use frazil::Issued;
use frazil_wire::{ApiError, Reason};
use hyper::Request;
use hyper::body::{Body, Incoming};
use hyper::header::ACCEPT;

use super::accept::Form;
use super::answer::{Answer, described};
use super::query;
use crate::app::Shared;
use crate::encode::push_ids;
use crate::issuer::parse_count;
use crate::metrics::Protocol;

pub(super) async fn issue(
    shared: &Shared,
    request: &Request<Incoming>,
) -> Result<Answer, ApiError> {
    if !request.body().is_end_stream() {
        let detail = "this takes no body: write count and scope into the path's query";
        return Err(ApiError::new(Reason::InvalidArgument, detail));
    }
    let form = form(request)?;
    let [count, scope] = query::known(request.uri(), ["count", "scope"])?;
    let count = count.map_or(Ok(1), |count| parse_count(count.as_bytes()))?;
    let scope = shared.issuer.scope(scope.as_deref().unwrap_or_default())?;
    let issued = shared.issuer.issue(shared.issuer.want(count, None)?).await?;
    shared.metrics.requests.issued(Protocol::Http, scope, count.into());
    shared.metrics.requests.batch(count.into());
    let scope = scope.map(|scope| shared.issuer.scopes()[scope.0].as_str());
    Ok(described(form.content_type(), written(shared, &issued, form, scope)))
}

fn form(request: &Request<Incoming>) -> Result<Form, ApiError> {
    match request.headers().get(ACCEPT) {
        None => Ok(Form::Json),
        Some(accept) => Form::accepted(Some(accept.to_str().unwrap_or("unreadable"))),
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
