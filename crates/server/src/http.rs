//! HTTP: translates requests and answers, decides nothing.

mod accept;
mod answer;
mod body;
mod decode;
mod health;
mod ids;
mod query;
mod route;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frazil::coord::time::boot_time;
use frazil_wire::{ApiError, Reason};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use self::answer::{Answer, problem};
use self::route::Route;
use crate::app::Shared;
use crate::listener;
use crate::metrics::{Exposition, Method, Protocol};
use crate::self_portrait;

/// A client must have sent a request's head by then; an idle connection lasts as long.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request's head: real ones have a few hundred.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// What the tests hold the server to.
const OPENAPI: &str = include_str!("../openapi.json");
/// The one number in it that is configured, as it is by default.
const OPENAPI_MAX_COUNT: &str = ": 100000";

/// Serves HTTP until the server closes.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let (most, going) = (shared.issuer.limits().max_connections, shared.going.clone());
    listener::accept(listener, most, going, |stream| connection(stream, shared.clone())).await;
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let closing = shared.going.closing.clone();
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(handle(&shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // How a connection ends is the client's affair.
    tokio::select! {
        biased;
        _ = connection.as_mut() => {}
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Answers a request and counts it.
async fn handle(shared: &Shared, request: Request<Incoming>) -> Answer {
    let began = boot_time();
    let is_head = request.method() == hyper::Method::HEAD;
    let Some(route) = Route::find(request.uri().path()) else {
        let error = ApiError::new(Reason::NotFound, "no such path: see /openapi.json");
        shared.metrics.requests.failed(Protocol::Http, Method::Other, error.reason);
        return problem(&error);
    };
    if !route.has(request.method()) {
        let error = ApiError::new(
            Reason::MethodNotAllowed,
            format_args!("this path is for {}", route.allow()),
        );
        shared.metrics.requests.failed(Protocol::Http, route.method(), error.reason);
        let mut answer = problem(&error);
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(route.allow()));
        return answer;
    }
    let method = route.method();
    match respond(shared, route, request).await {
        Ok(answer) => {
            let seconds = boot_time().saturating_sub(began).as_secs_f64();
            shared.metrics.requests.done(Protocol::Http, method, seconds);
            if is_head { answer::without_body(answer) } else { answer }
        }
        Err(error) => {
            shared.metrics.requests.failed(Protocol::Http, method, error.reason);
            problem(&error)
        }
    }
}

async fn respond(
    shared: &Shared,
    route: Route,
    request: Request<Incoming>,
) -> Result<Answer, ApiError> {
    match route {
        Route::Ids => ids::issue(shared, &request).await,
        Route::DecodeOne => decode::one(shared, &request),
        Route::DecodeMany => decode::many(shared, request).await,
        Route::Encode => decode::encode(shared, request).await,
        Route::Info => {
            query::none(request.uri())?;
            Ok(answer::json(&self_portrait::info(shared)))
        }
        Route::Cluster => {
            query::none(request.uri())?;
            cluster(shared).await
        }
        Route::Live => Ok(answer::text(StatusCode::OK, "ok\n")),
        Route::Ready => health::ready(shared, &request),
        Route::Metrics => Ok(metrics(shared, &request)),
        Route::OpenApi => Ok(answer::described("application/json", shared.openapi.clone())),
    }
}

/// The OpenAPI description of a server that gives out so many Ids at once.
pub(crate) fn openapi(max_count: u32) -> Bytes {
    OPENAPI.replace(OPENAPI_MAX_COUNT, &format!(": {max_count}")).into()
}

async fn cluster(shared: &Shared) -> Result<Answer, ApiError> {
    let node = shared.issuer.node().ok_or_else(|| {
        ApiError::new(Reason::StoreUnavailable, "the store has not been reached yet")
            .retry_after(Duration::from_secs(1))
    })?;
    let cluster = shared.lookout.cluster(node, shared.issuer.scopes()).await?;
    Ok(answer::json(&cluster))
}

fn metrics(shared: &Shared, request: &Request<Incoming>) -> Answer {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let exposition = Exposition::accepted(accept.unwrap_or_default());
    answer::described(exposition.content_type(), shared.metrics_page(exposition))
}
