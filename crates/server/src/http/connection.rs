//! One HTTP connection, from its first byte to its end.

mod activity;
mod first_head;
mod unread;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

pub(super) use self::activity::Activity;
use self::activity::{PhaseTimeouts, TrackedStream};
use self::first_head::wait_for_first_head;
use self::unread::HeadLimits;
use super::GRACE;
use super::handle::handle;
use crate::app::Shared;
use crate::net::listener::Remote;
use crate::net::poll_on_wake::PollOnWake;
use crate::net::stream::Stream;
use crate::net::unauthenticated::Cut;

/// [`GRACE`] for who came beyond the limit: probes ask at once.
const SPARE_GRACE: Duration = Duration::from_secs(1);
/// Connections behind TLS that have sent no request yet, where a key is needed: each holds some ten
/// kilobytes, and with half a long head twenty.
pub(crate) const UNAUTHENTICATED_TLS_MAX: usize = 500;
/// Headers that are read without a list of their own in memory.
const HEADERS_USUAL: usize = 100;

/// Serves a connection until it ends.
pub(super) async fn serve(mut stream: Stream, shared: Arc<Shared>, remote: Remote) {
    let activity = Arc::new(Activity::new());
    let limits = shared.issuer.limits();
    let heads = HeadLimits::new(limits);
    let patience = PhaseTimeouts {
        idle: limits.idle_timeout,
        head: limits.head_timeout,
        reading: limits.write_timeout,
    };
    let patience = if remote.is_spare { patience.at_most(SPARE_GRACE) } else { patience };
    let begun = first_head(&mut stream, &shared, &remote, (heads, patience), &activity).await;
    if let Some(begun) = begun {
        let stream = TrackedStream::new(stream, begun, activity.clone(), heads);
        // On the heap from now on: a connection that waits for its first request does without it.
        Box::pin(requests(stream, shared, remote, activity, patience)).await;
    }
}

/// What was read of the connection until the head of its first request was there. None if that did not
/// come in time, or the place was needed for another.
async fn first_head(
    stream: &mut Stream,
    shared: &Shared,
    remote: &Remote,
    (heads, patience): (HeadLimits, PhaseTimeouts),
    activity: &Activity,
) -> Option<Bytes> {
    let closing = &shared.shutdown.closing;
    if !matches!(stream, Stream::Tls(_)) || !shared.authenticator.is_unauthenticated(remote) {
        return wait_for_first_head(stream, heads, activity, patience, closing).await;
    }
    let cut = Arc::new(Cut::default());
    let entering = shared.unauthenticated_tls.enter(remote, &cut);
    let _permit = tokio::time::timeout(patience.head, entering).await.ok()??;
    tokio::select! {
        biased;
        begun = wait_for_first_head(stream, heads, activity, patience, closing) => begun,
        () = cut.wait() => None,
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
