//! Taking connections in, as many as may be open.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::crew::Crew;
use crate::drain::Going;

/// When the system gives no more connections, others must end first.
pub(crate) const BREATH: Duration = Duration::from_millis(100);

/// Accepts until the server closes; each connection is served in a task of its own. When as many
/// are open as may be, further ones wait in the system's queue.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    most: usize,
    going: Going,
    crew: &Crew,
    serve: impl Fn(TcpStream) -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(most));
    let mut is_troubled = false;
    loop {
        let place = tokio::select! {
            () = going.closing.cancelled() => return,
            Ok(place) = places.clone().acquire_owned() => place,
        };
        let accepted = tokio::select! {
            () = going.closing.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                is_troubled = false;
                // Answers are written whole; holding them back would only add latency.
                let _ = stream.set_nodelay(true);
                let serve = serve.clone();
                crew.serve(&going, stream, async move |stream| {
                    serve(stream).await;
                    drop(place);
                });
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
