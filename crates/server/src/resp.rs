//! RESP: any Redis client is a client. Translates commands and answers, decides nothing.

mod command;
mod connection;
mod frame;
mod handshake;
mod reply;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use self::command::COMMANDS;
use self::connection::Connection;
use crate::access::Need;
use crate::app::Shared;
use crate::crew::Crew;
use crate::listener::{self, Arrival};
use crate::tls::{NoHandshake, Speech};

/// How long somebody who is sent away is waited for.
const COURTESY: Duration = Duration::from_secs(1);

/// Serves RESP until the server closes.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>, crew: Arc<Crew>) {
    let (places, going) = (shared.places.resp.clone(), shared.going.clone());
    let numbers = Arc::new(AtomicU64::new(1));
    let serve = move |Arrival { stream, place }: Arrival| {
        // Relaxed: only told apart by it.
        let (shared, number) = (shared.clone(), numbers.fetch_add(1, Ordering::Relaxed));
        async move {
            if place.is_spare() {
                return tell(stream, b"-ERR max number of clients reached\r\n").await;
            }
            match shared.secured(stream, Speech::Resp).await {
                Ok(stream) => Connection::new(shared, stream, number).run().await,
                Err(NoHandshake::Plain(stream)) => {
                    tell(stream, b"-ERR this port speaks TLS: use rediss://\r\n").await;
                }
                // How a connection ends is the client's affair.
                Err(NoHandshake::Failed(_)) => {}
            }
            drop(place);
        }
    };
    listener::accept(listener, places, going, &crew, serve).await;
}

/// Every command, and what it needs.
pub(crate) fn table() -> impl Iterator<Item = (String, Need)> {
    COMMANDS.iter().map(|(name, need)| (name.to_ascii_uppercase(), *need))
}

/// Says why a connection ends, if the client listens.
async fn tell(mut stream: TcpStream, why: &[u8]) {
    let _ = tokio::time::timeout(COURTESY, stream.write_all(why)).await;
}
