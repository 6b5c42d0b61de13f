//! The shutdown of a server, step by step: drain, close, cut.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::Shared;

/// The steps of a shutdown, which every connection watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shutdown {
    /// Set first: no new clients are wanted, everything still works.
    pub(crate) draining: CancellationToken,
    /// Set then: nothing new is accepted, what is in flight is finished.
    pub(crate) closing: CancellationToken,
    /// Set last: what did not finish in time is cut off.
    pub(crate) cut: CancellationToken,
    /// Every connection.
    pub(crate) connections: TaskTracker,
}

impl Shutdown {
    /// Stops accepting and waits for what is in flight. `false`: some of it did not end in time.
    pub(crate) async fn close(&self, patience: Duration) -> bool {
        self.closing.cancel();
        self.connections.close();
        let is_done = tokio::time::timeout(patience, self.connections.wait()).await.is_ok();
        self.cut.cancel();
        is_done
    }
}

/// Takes the node out of service: not ready at once, and after the time that balancers have to
/// notice, its workers are released. The server goes on answering probes and says DRAINING to
/// everybody else, until it is stopped. Gives the workers that were held.
pub(crate) async fn retire(shared: Arc<Shared>) -> Vec<u32> {
    let held = shared.workers();
    shared.shutdown.draining.cancel();
    tokio::select! {
        () = tokio::time::sleep(shared.drain_delay) => {}
        // Whoever stops the server does not wait for balancers twice.
        () = shared.shutdown.closing.cancelled() => {}
    }
    shared.node_elections.resigned().await;
    if let Some(node) = shared.issuer.node() {
        node.shutdown().await;
    }
    held
}
