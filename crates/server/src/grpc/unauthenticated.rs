//! Unauthenticated gRPC clients: they have shown no key, may stay for a time, and only so many at once.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, timeout_at};

use super::incoming::{ClientState, Connection};
use crate::net::unauthenticated::UnauthenticatedClients;

/// Connections that speak HTTP/2 and have shown no key: each holds some forty kilobytes, and the
/// windows bound it at a hundred. Who has a key shows it with the first call, and balancers that
/// probe without one are fewer.
pub(super) const UNAUTHENTICATED_MAX: usize = 128;

/// A client that has shown no key yet.
#[derive(Debug)]
pub(super) struct UnauthenticatedClient {
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl UnauthenticatedClient {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, deadline: Box::pin(tokio::time::sleep(limit)) }
    }

    /// When it must have shown a key.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline.deadline()
    }

    /// Counts it among those who speak HTTP/2, and waits for its turn. None if that took too long.
    pub(super) async fn enter(
        &self,
        unauthenticated_clients: &Arc<UnauthenticatedClients>,
        connection: &Connection,
    ) -> Option<()> {
        let Connection { remote, client_state } = connection;
        let entering = unauthenticated_clients.enter(remote, &client_state.cut);
        let entering = timeout_at(self.deadline(), entering);
        client_state.keep(entering.await.ok()??);
        Some(())
    }

    /// Ends when there was neither a key nor a probe for too long.
    pub(super) fn poll_expired(
        &mut self,
        client_state: &ClientState,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        while self.deadline.as_mut().poll(context).is_ready() {
            if !client_state.has_probed() {
                return Poll::Ready(());
            }
            self.deadline.as_mut().reset(Instant::now() + self.limit);
        }
        Poll::Pending
    }
}
