//! HTTP: translates requests and answers, decides nothing.

mod accept;
mod answer;
mod body;
mod connection;
mod handle;
mod long;
mod nonce;
mod origin;
mod query;
mod route;
mod routes;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

pub(crate) use self::connection::UNAUTHENTICATED_TLS_MAX;
pub(crate) use self::route::table;
use crate::app::Shared;
use crate::net::listener::{self, NewConnection};
use crate::net::serve_threads::ServeThreads;
use crate::net::tls::{HandshakeError, TlsProtocol};
use crate::policy::access::ListenerKind;

/// How long a client may take for anything once the server closes: long enough to read an answer,
/// and less than a drain takes.
const GRACE: Duration = Duration::from_secs(5);

/// What the tests hold the server to.
const OPENAPI: &str = include_str!("../openapi.json");
/// The one number in it that is configured, as it is by default.
const OPENAPI_MAX_COUNT: &str = ": 100000";

/// Serves HTTP until the server closes.
pub(crate) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    threads: Arc<ServeThreads>,
    listener_kind: ListenerKind,
) {
    let shutdown = shared.shutdown.clone();
    let limits = match listener_kind {
        ListenerKind::Public => shared.connection_limits.http.clone(),
        ListenerKind::Admin => shared.connection_limits.admin.clone(),
    };
    let serve = move |NewConnection { stream, permit, mut remote }| {
        let shared = shared.clone();
        async move {
            match shared.secured(stream, TlsProtocol::Http, &mut remote).await {
                Ok(stream) => connection::serve(stream, shared, remote).await,
                Err(HandshakeError::Plain(stream)) => tell_of_tls(stream).await,
                // How a connection ends is the client's affair.
                Err(HandshakeError::Failed(_)) => {}
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

/// The OpenAPI description of a server that gives out so many IDs at once.
pub(crate) fn openapi(max_count: u32) -> Bytes {
    OPENAPI.replace(OPENAPI_MAX_COUNT, &format!(": {max_count}")).into()
}
