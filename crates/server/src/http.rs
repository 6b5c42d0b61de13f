//! HTTP: translates requests and answers, decides nothing.

mod accept;
mod activity;
mod admin;
mod answer;
mod asked;
mod body;
mod decode;
mod elections;
mod first_head;
mod handle;
mod health;
mod ids;
mod long;
mod nonce;
mod origin;
mod query;
mod route;
mod unread;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use self::activity::{Activity, PhaseTimeouts, TrackedStream};
use self::first_head::has_first_head;
use self::handle::handle;
pub(crate) use self::route::table;
use self::unread::HeadLimits;
use crate::app::Shared;
use crate::net::listener::{self, Arrival, Remote};
use crate::net::poll_on_wake::PollOnWake;
use crate::net::serve_threads::ServeThreads;
use crate::net::stream::Stream;
use crate::net::tls::{NoHandshake, Speech};
use crate::policy::access::Door;

/// How long a client may take for anything once the server closes: long enough to read an answer,
/// and less than a drain takes.
const GRACE: Duration = Duration::from_secs(5);
/// The same for who came beyond the limit: probes ask at once.
const SPARE_GRACE: Duration = Duration::from_secs(1);
/// Headers that are read without a list of their own in memory.
const HEADERS_USUAL: usize = 100;

/// What the tests hold the server to.
const OPENAPI: &str = include_str!("../openapi.json");
/// The one number in it that is configured, as it is by default.
const OPENAPI_MAX_COUNT: &str = ": 100000";

/// Serves HTTP until the server closes.
pub(crate) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    threads: Arc<ServeThreads>,
    door: Door,
) {
    let shutdown = shared.shutdown.clone();
    let limits = match door {
        Door::Front => shared.connection_limits.http.clone(),
        Door::Admin => shared.connection_limits.admin.clone(),
    };
    let serve = move |Arrival { stream, permit, mut remote }| {
        let shared = shared.clone();
        async move {
            match shared.secured(stream, Speech::Http, &mut remote).await {
                Ok(stream) => connection(stream, shared, remote).await,
                Err(NoHandshake::Plain(stream)) => tell_of_tls(stream).await,
                // How a connection ends is the client's affair.
                Err(NoHandshake::Failed(_)) => {}
            }
            drop(permit);
        }
    };
    listener::accept(listener, limits, shutdown, &threads, serve).await;
}

/// Answers a client that speaks plainly where TLS is spoken.
async fn tell_of_tls(mut stream: TcpStream) {
    let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
                   content-length: 34\r\n\r\nthis port speaks TLS: use https://\n";
    // It is a courtesy.
    let _ = tokio::time::timeout(GRACE, stream.write_all(answer)).await;
}

async fn connection(stream: Stream, shared: Arc<Shared>, remote: Remote) {
    let activity = Arc::new(Activity::new());
    let limits = shared.issuer.limits();
    let heads = HeadLimits::new(limits);
    let patience = PhaseTimeouts {
        idle: limits.idle_timeout,
        head: limits.head_timeout,
        reading: limits.write_timeout,
    };
    let patience = if remote.is_spare { patience.at_most(SPARE_GRACE) } else { patience };
    if has_first_head(&stream, heads, &activity, patience, &shared.shutdown.closing).await {
        let stream = TrackedStream::new(stream, activity.clone(), heads);
        // On the heap from now on: a connection that waits for its first request does without it.
        Box::pin(requests(stream, shared, remote, activity, patience)).await;
    }
}

/// Answers requests until the client or the server ends it.
async fn requests(
    stream: TrackedStream,
    shared: Arc<Shared>,
    remote: Remote,
    activity: Arc<Activity>,
    patience: PhaseTimeouts,
) {
    let closing = shared.shutdown.closing.clone();
    let limits = *shared.issuer.limits();
    let heads = HeadLimits::new(&limits);
    let remote = Arc::new(remote);
    let service = service_fn({
        let activity = activity.clone();
        move |request| {
            let (shared, activity, remote) = (shared.clone(), activity.clone(), remote.clone());
            // On the heap for as long as it takes: a connection that waits does without its memory.
            let handling = async move { handle(&shared, &activity, &remote, request).await };
            let handling = Box::pin(handling);
            async move { Ok::<_, Infallible>(handling.await) }
        }
    });
    let mut builder = http1::Builder::new();
    // Timers are ours: see `Activity`.
    builder.header_read_timeout(None).max_buf_size(heads.bytes());
    if limits.max_headers != HEADERS_USUAL {
        builder.max_headers(limits.max_headers);
    }
    // Answers are short, or one piece: a copy is cheaper than a list.
    let connection = builder.writev(false).serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let watched = activity.clone();
    let end = PollOnWake::new(async move {
        tokio::select! {
            () = closing.cancelled() => End::Closing,
            () = watched.lost(patience) => End::Lost,
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
            () = activity.lost(patience.at_most(GRACE)) => {}
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

/// The OpenAPI description of a server that gives out so many IDs at once.
pub(crate) fn openapi(max_count: u32) -> Bytes {
    OPENAPI.replace(OPENAPI_MAX_COUNT, &format!(": {max_count}")).into()
}
