//! HTTP: translates requests and answers, decides nothing.

mod accept;
mod admin;
mod answer;
mod body;
mod decode;
mod elections;
mod handle;
mod health;
mod ids;
mod long;
mod nonce;
mod patience;
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

use self::handle::handle;
use self::patience::{Felt, Patience, Pulse};
pub(crate) use self::route::table;
use self::unread::HeadLimits;
use crate::access::Door;
use crate::app::Shared;
use crate::aside::Aside;
use crate::crew::Crew;
use crate::listener::{self, Arrival};
use crate::stream::Stream;
use crate::tls::{NoHandshake, Speech};

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
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>, crew: Arc<Crew>, door: Door) {
    let going = shared.going.clone();
    let places = match door {
        Door::Front => shared.places.http.clone(),
        Door::Admin => shared.places.admin.clone(),
    };
    let serve = move |Arrival { stream, place }| {
        let shared = shared.clone();
        async move {
            let visit = Visit { door, is_spare: place.is_spare() };
            match shared.secured(stream, Speech::Http).await {
                Ok(stream) => connection(stream, shared, visit).await,
                Err(NoHandshake::Plain(stream)) => tell_of_tls(stream).await,
                // How a connection ends is the client's affair.
                Err(NoHandshake::Failed(_)) => {}
            }
            drop(place);
        }
    };
    listener::accept(listener, places, going, &crew, serve).await;
}

/// How somebody came in.
#[derive(Clone, Copy, Debug)]
struct Visit {
    door: Door,
    /// Beyond the limit: only those who watch the node are answered.
    is_spare: bool,
}

/// Answers a client that speaks plainly where TLS is spoken.
async fn tell_of_tls(mut stream: TcpStream) {
    let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
                   content-length: 34\r\n\r\nthis port speaks TLS: use https://\n";
    // It is a courtesy.
    let _ = tokio::time::timeout(GRACE, stream.write_all(answer)).await;
}

async fn connection(stream: Stream, shared: Arc<Shared>, visit: Visit) {
    let closing = shared.going.closing.clone();
    let limits = *shared.issuer.limits();
    let pulse = Arc::new(Pulse::new());
    let service = service_fn({
        let pulse = pulse.clone();
        move |request| {
            let (shared, pulse) = (shared.clone(), pulse.clone());
            async move { Ok::<_, Infallible>(handle(&shared, &pulse, visit, request).await) }
        }
    });
    let mut builder = http1::Builder::new();
    // Timers are ours: see `Pulse`.
    let heads = HeadLimits::new(&limits);
    builder.header_read_timeout(None).max_buf_size(heads.bytes());
    if limits.max_headers != HEADERS_USUAL {
        builder.max_headers(limits.max_headers);
    }
    // Answers are short, or one piece: a copy is cheaper than a list.
    let stream = TokioIo::new(Felt::new(stream, pulse.clone(), heads));
    let connection = builder.writev(false).serve_connection(stream, service);
    tokio::pin!(connection);
    let watched = pulse.clone();
    let patience = Patience {
        idle: limits.idle_timeout,
        head: limits.head_timeout,
        reading: limits.write_timeout,
    };
    let patience = if visit.is_spare { patience.at_most(SPARE_GRACE) } else { patience };
    let end = Aside::new(async move {
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
            () = pulse.lost(patience.at_most(GRACE)) => {}
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

/// The OpenAPI description of a server that gives out so many Ids at once.
pub(crate) fn openapi(max_count: u32) -> Bytes {
    OPENAPI.replace(OPENAPI_MAX_COUNT, &format!(": {max_count}")).into()
}
