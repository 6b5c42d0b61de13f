//! From a request to its answer.

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::time::boot_time;
use frazil_wire::{ApiError, Reason};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CONNECTION, HeaderMap, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Request, StatusCode};

use super::answer::{self, Answer, problem};
use super::patience::Pulse;
use super::route::Route;
use super::{Visit, admin, decode, elections, health, ids, nonce, query};
use crate::access::{Caller, Need, bearer};
use crate::app::Shared;
use crate::keys::Left;
use crate::metrics::{Exposition, Method, Protocol};
use crate::self_portrait;

/// Why a request fails, and what its headers say of it.
pub(super) struct Failed {
    error: ApiError,
    quota: Option<Left>,
}

impl Failed {
    /// Beyond the key's quota.
    pub(super) fn quota(error: ApiError, caller: &Caller) -> Self {
        Self { error, quota: caller.used_up() }
    }
}

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        Self { error, quota: None }
    }
}

/// Answers a request and counts it.
pub(super) async fn handle(
    shared: &Arc<Shared>,
    pulse: &Arc<Pulse>,
    visit: Visit,
    request: Request<Incoming>,
) -> Answer {
    pulse.busy();
    let began = boot_time();
    let mut answer = answered(shared, visit, began, request).await;
    if visit.is_spare {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    pulse.answered(boot_time());
    if let Either::Right(long) = answer.body_mut() {
        long.feel(pulse);
    }
    answer
}

async fn answered(
    shared: &Arc<Shared>,
    visit: Visit,
    began: Duration,
    request: Request<Incoming>,
) -> Answer {
    let is_head = request.method() == hyper::Method::HEAD;
    let route = Route::find(request.uri().path()).map(|(route, _)| route);
    let method = route.map_or(Method::Other, Route::method);
    // One that makes no sense is refused where the other arguments are.
    let nonce = match route {
        Some(Route::Ids) => nonce::of(request.headers()).unwrap_or_default(),
        _ => None,
    };
    let outcome = match route {
        None => Err(ApiError::new(Reason::NotFound, "no such path: see /openapi.json").into()),
        Some(route) if !route.has(request.method()) => return no_method(shared, route),
        Some(route) => respond(shared, visit, route, request).await,
    };
    let took = boot_time().saturating_sub(began);
    let mut answer = match outcome {
        Ok(answer) => {
            shared.metrics.requests.done(Protocol::Http, method, took);
            if is_head { answer::without_body(answer) } else { answer }
        }
        Err(Failed { error, quota }) => {
            shared.metrics.requests.took(Protocol::Http, took);
            shared.metrics.requests.failed(Protocol::Http, method, error.reason);
            let mut answer = problem(&error);
            if error.reason == Reason::Unauthenticated {
                let how = HeaderValue::from_static("Bearer");
                answer.headers_mut().insert(WWW_AUTHENTICATE, how);
            }
            if let Some(left) = quota {
                answer::tell_quota(answer.headers_mut(), left);
            }
            answer
        }
    };
    if let Some(nonce) = nonce {
        answer.headers_mut().insert(nonce::NONCE, nonce);
    }
    answer
}

fn no_method(shared: &Shared, route: Route) -> Answer {
    let error =
        ApiError::new(Reason::MethodNotAllowed, format_args!("this path is for {}", route.allow()));
    shared.metrics.requests.failed(Protocol::Http, route.method(), error.reason);
    let mut answer = problem(&error);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(route.allow()));
    answer
}

async fn respond(
    shared: &Arc<Shared>,
    visit: Visit,
    route: Route,
    request: Request<Incoming>,
) -> Result<Answer, Failed> {
    check_size(shared, &request)?;
    if visit.is_spare && !route.is_for_watchers() {
        let detail = "as many connections are open as may be";
        let error = ApiError::new(Reason::Overloaded, detail).retry_after(Duration::from_secs(1));
        return Err(error.into());
    }
    let caller = admitted(shared, visit, route, request.headers())?;
    if route.is_for_watchers() {
        return Ok(watched(shared, route, &request).await?);
    }
    let limits = shared.issuer.limits();
    let _answering = shared.in_flight.enter(limits.max_in_flight)?;
    let answer = match route {
        Route::Ids => return ids::issue(shared, &caller, request).await,
        Route::DecodeOne => decode::one(shared, &request),
        Route::DecodeMany => decode::many(shared, request).await,
        Route::Encode => decode::encode(shared, request).await,
        Route::Info => {
            query::none(request.uri())?;
            Ok(answer::json(&self_portrait::info(shared)))
        }
        Route::Cluster => {
            query::none(request.uri())?;
            in_time(limits.request_timeout, cluster(shared)).await
        }
        Route::Elections => in_time(limits.request_timeout, elections::all(shared, &request)).await,
        Route::Election => in_time(limits.request_timeout, elections::one(shared, &request)).await,
        Route::Drain => admin::drain(shared, &caller, request).await,
        Route::Rotate => admin::rotate(shared, &caller, request).await,
        Route::Release => admin::release(shared, &caller, request).await,
        Route::OpenApi => Ok(answer::described("application/json", shared.openapi.clone())),
        Route::Live | Route::Ready | Route::Metrics => watched(shared, route, &request).await,
    };
    Ok(answer?)
}

/// What those ask who watch the node; never refused because others ask too much.
async fn watched(
    shared: &Shared,
    route: Route,
    request: &Request<Incoming>,
) -> Result<Answer, ApiError> {
    match route {
        Route::Ready => health::ready(shared, request),
        Route::Metrics => Ok(metrics(shared, request).await),
        _ => Ok(answer::text(StatusCode::OK, "ok\n")),
    }
}

fn check_size(shared: &Shared, request: &Request<Incoming>) -> Result<(), ApiError> {
    let most = shared.issuer.limits().max_uri_bytes;
    let uri = request.uri();
    let bytes = uri.path().len() + uri.query().map_or(0, |query| query.len() + 1);
    if bytes > most {
        let detail = format_args!("the path has {bytes} bytes, and at most {most} are read");
        return Err(ApiError::new(Reason::UriTooLong, detail));
    }
    Ok(())
}

/// Whose request it is, if that one may do it.
fn admitted(
    shared: &Shared,
    visit: Visit,
    route: Route,
    headers: &HeaderMap,
) -> Result<Caller, ApiError> {
    let need = match route {
        Route::Metrics if shared.gate.has_open_metrics() => Need::Nothing,
        _ => route.need(),
    };
    if need == Need::Admin && !shared.gate.serves_admin(visit.door) {
        let detail = "administration is served on another address: see --admin";
        return Err(ApiError::new(Reason::NotFound, detail));
    }
    let shown = headers.get(AUTHORIZATION).and_then(|shown| bearer(shown.as_bytes()));
    let caller = shared.gate.admit(shown, need, visit.door)?;
    if need == Need::Admin && matches!(caller, Caller::Anybody) {
        admin::check_origin(headers)?;
    }
    Ok(caller)
}

async fn cluster(shared: &Shared) -> Result<Answer, ApiError> {
    let node = shared.issuer.node().ok_or_else(|| {
        ApiError::new(Reason::StoreUnavailable, "the store has not been reached yet")
            .retry_after(Duration::from_secs(1))
    })?;
    let cluster = shared.lookout.cluster(node).await?;
    Ok(answer::json(&frazil_wire::Cluster { scopes: shared.scopes.infos(), ..cluster }))
}

async fn metrics(shared: &Shared, request: &Request<Incoming>) -> Answer {
    shared.lookout.refresh(shared.issuer.node()).await;
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let exposition = Exposition::accepted(accept.unwrap_or_default());
    answer::described(exposition.content_type(), shared.metrics_page(exposition))
}

/// What takes longer than requests may take is not waited for.
pub(super) async fn in_time<T>(
    limit: Duration,
    asking: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::time::timeout(limit, asking).await.unwrap_or_else(|_| {
        let detail = format_args!("the store took longer than {limit:?}");
        Err(ApiError::new(Reason::StoreUnavailable, detail).retry_after(Duration::from_secs(1)))
    })
}
