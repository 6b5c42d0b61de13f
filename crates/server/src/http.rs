//! HTTP: translates requests and answers, decides nothing.

mod accept;
mod answer;
mod body;
mod decode;
mod health;
mod ids;
mod patience;
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
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use self::answer::{Answer, problem};
use self::patience::Pulse;
use self::route::Route;
use crate::app::Shared;
use crate::aside::Aside;
use crate::crew::Crew;
use crate::listener;
use crate::metrics::{Exposition, Method, Protocol};
use crate::self_portrait;

/// A client must have sent a request's head, and read the answer before, within this.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The same once the server closes: long enough to read an answer, and less than a drain takes.
const CLOSING_GRACE: Duration = Duration::from_secs(5);
/// Bytes of a request's head: real ones have a few hundred.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// What the tests hold the server to.
const OPENAPI: &str = include_str!("../openapi.json");
/// The one number in it that is configured, as it is by default.
const OPENAPI_MAX_COUNT: &str = ": 100000";

/// Serves HTTP until the server closes.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>, crew: Arc<Crew>) {
    let (most, going) = (shared.issuer.limits().max_connections, shared.going.clone());
    let serve = move |stream| connection(stream, shared.clone());
    listener::accept(listener, most, going, &crew, serve).await;
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let closing = shared.going.closing.clone();
    let pulse = Arc::new(Pulse::new());
    let service = service_fn({
        let pulse = pulse.clone();
        move |request| {
            let (shared, pulse) = (shared.clone(), pulse.clone());
            async move { Ok::<_, Infallible>(handle(&shared, &pulse, request).await) }
        }
    });
    let connection = http1::Builder::new()
        // Timers are ours: see `Pulse`.
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        // Answers are short, or one piece: a copy is cheaper than a list.
        .writev(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let watched = pulse.clone();
    let end = Aside::new(async move {
        tokio::select! {
            () = closing.cancelled() => End::Closing,
            () = watched.lost(HEAD_TIMEOUT) => End::Lost,
        }
    });
    // How a connection ends is the client's affair.
    let end = tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        end = end => end,
    };
    if matches!(end, End::Closing) {
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            _ = connection => {}
            // Half a request is not in flight.
            () = pulse.lost(CLOSING_GRACE) => {}
        }
    }
}

/// Why a connection ends from this side.
enum End {
    /// The server goes.
    Closing,
    /// The client neither asks nor reads.
    Lost,
}

/// Answers a request and counts it.
async fn handle(shared: &Shared, pulse: &Pulse, request: Request<Incoming>) -> Answer {
    pulse.busy();
    let began = boot_time();
    let answer = answered(shared, began, request).await;
    pulse.idle(boot_time());
    answer
}

async fn answered(shared: &Shared, began: Duration, request: Request<Incoming>) -> Answer {
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
    let outcome = respond(shared, route, request).await;
    let took = boot_time().saturating_sub(began);
    match outcome {
        Ok(answer) => {
            shared.metrics.requests.done(Protocol::Http, method, took);
            if is_head { answer::without_body(answer) } else { answer }
        }
        Err(error) => {
            shared.metrics.requests.took(Protocol::Http, took);
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
        Route::Ids => ids::issue(shared, request).await,
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
        Route::Metrics => Ok(metrics(shared, &request).await),
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

async fn metrics(shared: &Shared, request: &Request<Incoming>) -> Answer {
    shared.lookout.refresh(shared.issuer.node(), shared.issuer.scopes()).await;
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let exposition = Exposition::accepted(accept.unwrap_or_default());
    answer::described(exposition.content_type(), shared.metrics_page(exposition))
}
