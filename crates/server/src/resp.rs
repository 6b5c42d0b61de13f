//! RESP: any Redis client is a client. Translates commands and answers, decides nothing.

mod command;
mod connection;
mod frame;
mod handshake;
mod reply;
mod session;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use self::command::COMMANDS;
use self::connection::Connection;
use crate::app::Shared;
use crate::net::listener::{self, NewConnection};
use crate::net::serve_threads::ServeThreads;
use crate::net::tls::{HandshakeError, TlsProtocol};
use crate::policy::access::Permission;

/// How long somebody who is sent away is waited for.
const COURTESY: Duration = Duration::from_secs(1);

/// Serves RESP until the server closes.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>, threads: Arc<ServeThreads>) {
    let (limits, shutdown) = (shared.connection_limits.resp.clone(), shared.shutdown.clone());
    let serve = move |NewConnection { stream, permit, mut remote }: NewConnection| {
        let shared = shared.clone();
        async move {
            if permit.is_spare() {
                return tell(stream, b"-ERR max number of clients reached\r\n").await;
            }
            match shared.secured(stream, TlsProtocol::Resp, &mut remote).await {
                Ok(stream) => Connection::new(shared, stream, remote).run().await,
                Err(HandshakeError::Plain(stream)) => {
                    tell(stream, b"-ERR this port speaks TLS: use rediss://\r\n").await;
                }
                // How a connection ends is the client's affair.
                Err(HandshakeError::Failed(_)) => {}
            }
            drop(permit);
        }
    };
    listener::accept(listener, limits, shutdown, &threads, serve).await;
}

/// Every command, and what it needs.
pub(crate) fn table() -> impl Iterator<Item = (String, Permission)> {
    COMMANDS.iter().map(|(name, permission)| (name.to_ascii_uppercase(), *permission))
}

/// Says why a connection ends, if the client listens.
async fn tell(mut stream: TcpStream, why: &[u8]) {
    let _ = tokio::time::timeout(COURTESY, stream.write_all(why)).await;
}
