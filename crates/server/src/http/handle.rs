//! The handling of an HTTP request: route, authenticate, answer, count.

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_wire::{ApiError, Reason};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CONNECTION, HeaderMap, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Request, StatusCode};

use super::answer::{self, Answer, problem};
use super::connection::Activity;
use super::origin::MissingCredential;
use super::route::Route;
use super::routes::{admin, decode, elections, health, ids};
use super::{nonce, origin, query};
use crate::app::Shared;
use crate::cluster::cache::Addresses;
use crate::cluster::peers;
use crate::metrics::{Exposition, Method, Protocol};
use crate::net::listener::Remote;
use crate::net::request_id::{REQUEST_ID, RequestId};
use crate::node::info;
use crate::policy::access::{Caller, Permission, bearer};
use crate::policy::keys::QuotaLeft;

/// Shown to people who open the printed address in a browser.
const INDEX: &str = "\
Frazil: unique 64-bit IDs.

POST /v1/ids          one ID, or ?count=N of them: curl -X POST
GET  /v1/info         this node: its layout, its workers, its limits
GET  /readyz?verbose  whether it is ready, and why not
GET  /metrics         for Prometheus
GET  /openapi.json    all paths
";

/// Why a request fails, and what its headers say of it.
pub(super) struct Failed {
    error: ApiError,
    quota: Option<QuotaLeft>,
}

impl Failed {
    /// Of a caller, who hears of its quota where that is why.
    pub(super) fn new(error: ApiError, caller: &Caller) -> Self {
        let is_quota = error.reason == Reason::QuotaExceeded;
        Self { error, quota: is_quota.then(|| caller.used_up()).flatten() }
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
    activity: &Arc<Activity>,
    remote: &Remote,
    request: Request<Incoming>,
) -> Answer {
    activity.busy();
    let began = boot_time();
    let mut answer = answered(shared, remote, began, request).await;
    if remote.is_spare || shared.authenticator.is_unauthenticated(remote) {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    activity.answered(boot_time());
    if let Either::Right(long) = answer.body_mut() {
        long.track(activity);
    }
    answer
}

async fn answered(
    shared: &Arc<Shared>,
    remote: &Remote,
    began: Duration,
    request: Request<Incoming>,
) -> Answer {
    let id = RequestId::of(request.headers(), remote.connection, began);
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
        Some(route) if !route.has(request.method()) => {
            let mut answer = no_method(shared, route);
            answer.headers_mut().insert(REQUEST_ID, id.value());
            return answer;
        }
        Some(route) => respond(shared, remote.with_request(id.clone()), route, request).await,
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
    if answer.status().as_u16() >= 400 || method == Method::Admin {
        answer.headers_mut().insert(REQUEST_ID, id.value());
    }
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
    remote: Remote,
    route: Route,
    request: Request<Incoming>,
) -> Result<Answer, Failed> {
    check_size(shared, &request)?;
    if remote.is_spare && !route.is_for_watchers() {
        let detail = "as many connections are open as may be";
        let error = ApiError::new(Reason::Overloaded, detail).retry_after(Duration::from_secs(1));
        return Err(error.into());
    }
    let remote = remote.forwarded(request.headers(), &shared.proxies)?;
    let caller = admitted(shared, &remote, route, request.headers())?;
    if route.is_for_watchers() {
        return Ok(watched(shared, &remote, route, &request).await?);
    }
    let limits = shared.issuer.limits();
    let _answering = shared.in_flight.enter(limits.max_in_flight, caller.number())?;
    let answer = match route {
        Route::Ids => return ids::issue(shared, &remote, &caller, request).await,
        Route::DecodeOne => decode::one(shared, &request),
        Route::DecodeMany => return decode::many(shared, &caller, request).await,
        Route::Encode => decode::encode(shared, request).await,
        Route::Info => {
            query::none(request.uri())?;
            Ok(answer::json(&info::info(shared)))
        }
        Route::Cluster => {
            query::none(request.uri())?;
            in_time(limits.request_timeout, cluster(shared, &caller)).await
        }
        Route::Elections => in_time(limits.request_timeout, elections::all(shared, &request)).await,
        Route::Election => in_time(limits.request_timeout, elections::one(shared, &request)).await,
        Route::Drain => admin::drain(shared, (&remote, &caller), request).await,
        Route::Rotate => admin::rotate(shared, (&remote, &caller), request).await,
        Route::Release => admin::release(shared, (&remote, &caller), request).await,
        Route::Index => Ok(answer::text(StatusCode::OK, INDEX)),
        Route::OpenApi => Ok(answer::described("application/json", shared.openapi.clone())),
        Route::Live | Route::Ready | Route::Metrics => {
            watched(shared, &remote, route, &request).await
        }
    };
    Ok(answer?)
}

/// What those ask who watch the node; never refused because others ask too much.
async fn watched(
    shared: &Shared,
    remote: &Remote,
    route: Route,
    request: &Request<Incoming>,
) -> Result<Answer, ApiError> {
    match route {
        Route::Ready => health::ready(shared, remote, request),
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

/// The caller of a request, if it may make it.
fn admitted(
    shared: &Shared,
    remote: &Remote,
    route: Route,
    headers: &HeaderMap,
) -> Result<Caller, ApiError> {
    let permission = match route {
        Route::Metrics if shared.authenticator.has_open_metrics() => Permission::Nothing,
        Route::Ids if headers.contains_key(peers::FORWARDED) => Permission::Peer,
        _ => route.permission(),
    };
    if permission == Permission::Admin && !shared.authenticator.serves_admin(remote.listener_kind) {
        let detail = "administration is served on another address: see --admin";
        return Err(ApiError::new(Reason::NotFound, detail));
    }
    let shown = headers.get(AUTHORIZATION).and_then(|shown| bearer(shown.as_bytes()));
    let caller = shared.authenticator.admit(remote, shown, permission)?;
    match (permission, &caller) {
        // A browser shows a certificate for whichever page asks; only a key is shown on purpose.
        (_, Caller::Key(_)) if shown.is_none() => {
            origin::check(headers, remote, MissingCredential::Key)?
        }
        (Permission::Admin, Caller::Anybody) => origin::check_admin(headers, remote)?,
        (_, Caller::Anybody) if route.is_post() => {
            origin::check(headers, remote, MissingCredential::Keys)?
        }
        _ => {}
    }
    Ok(caller)
}

/// Where the nodes are, to everybody with a key; what else is known of them needs a role.
async fn cluster(shared: &Shared, caller: &Caller) -> Result<Answer, ApiError> {
    let node = shared.issuer.node().ok_or_else(|| {
        ApiError::new(Reason::StoreUnavailable, "the store has not been reached yet")
            .retry_after(Duration::from_secs(1))
    })?;
    let mut cluster = shared.cluster_cache.cluster(node).await?;
    cluster.scopes = shared.scopes.infos();
    Ok(match caller.may(Permission::Read) {
        true => answer::json(&cluster),
        false => answer::json(&Addresses::from(cluster)),
    })
}

async fn metrics(shared: &Shared, request: &Request<Incoming>) -> Answer {
    shared.cluster_cache.refresh(shared.issuer.node()).await;
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
