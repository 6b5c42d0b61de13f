//! Taking connections in, as many as may be open.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::crew::Crew;
use crate::drain::Going;
use crate::places::{Place, Places};

/// When the system gives no more connections, others must end first.
const BREATH: Duration = Duration::from_millis(100);

/// A client at the door, and its place.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) stream: TcpStream,
    pub(crate) place: Place,
}

/// Accepts until the server closes; each connection is served in a task of its own.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    places: Arc<Places>,
    going: Going,
    crew: &Crew,
    serve: impl Fn(Arrival) -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    while let Some(Arrival { stream, place }) = arrival(&listener, &places, &going).await {
        let serve = serve.clone();
        crew.serve(&going, stream, async move |stream| serve(Arrival { stream, place }).await);
    }
}

/// The next client for whom there is a place; `None` when the server closes. Those for whom there
/// is none are sent away: a client that waits for nothing cannot ask another node.
pub(crate) async fn arrival(
    listener: &TcpListener,
    places: &Arc<Places>,
    going: &Going,
) -> Option<Arrival> {
    let mut is_troubled = false;
    loop {
        let accepted = tokio::select! {
            () = going.closing.cancelled() => return None,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                is_troubled = false;
                if let Some(place) = place(places, peer) {
                    // Answers are written whole; holding them back would only add latency.
                    let _ = stream.set_nodelay(true);
                    return Some(Arrival { stream, place });
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut is_troubled, true) {
                    tracing::warn!(%error, "a connection cannot be accepted");
                }
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

fn place(places: &Arc<Places>, peer: SocketAddr) -> Option<Place> {
    let place = places.take(peer.ip());
    if place.as_ref().is_none_or(Place::is_spare) {
        let (listener, peer) = (places.listener, peer.ip());
        tracing::warn!(listener, %peer, "as many connections are open as may be, in all or of a peer");
    }
    place
}
