//! RESP: any Redis client is a client. Translates commands and answers, decides nothing.

mod command;
mod connection;
mod frame;
mod handshake;
mod reply;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpListener;

use self::connection::Connection;
use crate::app::Shared;
use crate::crew::Crew;
use crate::listener;

/// Serves RESP until the server closes.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>, crew: Arc<Crew>) {
    let (most, going) = (shared.issuer.limits().max_connections, shared.going.clone());
    let numbers = Arc::new(AtomicU64::new(1));
    let serve = move |stream| {
        // Relaxed: only told apart by it.
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        Connection::new(shared.clone(), stream, number).run()
    };
    listener::accept(listener, most, going, &crew, serve).await;
}
