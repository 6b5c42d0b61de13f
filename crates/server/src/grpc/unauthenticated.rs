//! Unauthenticated connections: they have shown no key, may stay for a time, and only so many at once.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, timeout_at};

use super::incoming::{ClientState, Connection};
use crate::net::connection_limits::address_group;

/// Connections that speak HTTP/2 and have shown no key: each holds some forty kilobytes, and the
/// windows bound it at a hundred. Who has a key shows it with the first call, and balancers that
/// probe without one are fewer.
const UNAUTHENTICATED_MAX: usize = 128;

/// The connections that have shown no key yet. Where one too many comes, the oldest of the address with
/// the most of them is ended, and the new one begins when that has given back what it held.
#[derive(Debug)]
pub(super) struct UnauthenticatedClients {
    /// The oldest first.
    entries: Mutex<VecDeque<Entry>>,
    permits: Arc<Semaphore>,
}

#[derive(Debug)]
struct Entry {
    connection: u64,
    peer: IpAddr,
    client_state: Arc<ClientState>,
}

/// The right to be one of them, for as long as it is kept.
#[derive(Debug)]
struct UnauthenticatedPermit {
    unauthenticated_clients: Arc<UnauthenticatedClients>,
    connection: u64,
    _permit: OwnedSemaphorePermit,
}

impl Default for UnauthenticatedClients {
    fn default() -> Self {
        Self { entries: Mutex::default(), permits: Arc::new(Semaphore::new(UNAUTHENTICATED_MAX)) }
    }
}

impl UnauthenticatedClients {
    /// None if the semaphore was closed, which nobody does.
    async fn enter(self: &Arc<Self>, connection: &Connection) -> Option<UnauthenticatedPermit> {
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.end_one();
                self.permits.clone().acquire_owned().await.ok()?
            }
        };
        let Connection { remote, client_state } = connection;
        let (connection, peer) = (remote.connection, address_group(remote.address));
        self.entries().push_back(Entry { connection, peer, client_state: client_state.clone() });
        Some(UnauthenticatedPermit {
            unauthenticated_clients: self.clone(),
            connection,
            _permit: permit,
        })
    }

    fn end_one(&self) {
        let ended = remove_one(&mut self.entries());
        if let Some(ended) = ended {
            ended.client_state.cut();
        }
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the oldest of the address with the most.
fn remove_one(entries: &mut VecDeque<Entry>) -> Option<Entry> {
    let mut by_peer: HashMap<IpAddr, usize> = HashMap::new();
    for one in &*entries {
        *by_peer.entry(one.peer).or_default() += 1;
    }
    let most = by_peer.values().max()?;
    let place = entries.iter().position(|one| by_peer.get(&one.peer) == Some(most))?;
    entries.remove(place)
}

impl Drop for UnauthenticatedPermit {
    fn drop(&mut self) {
        let mut entries = self.unauthenticated_clients.entries();
        if let Some(place) = entries.iter().position(|one| one.connection == self.connection) {
            entries.remove(place);
        }
    }
}

/// A client that has shown no key yet.
#[derive(Debug)]
pub(super) struct UnauthenticatedClient {
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
    permit: Option<UnauthenticatedPermit>,
}

impl UnauthenticatedClient {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, deadline: Box::pin(tokio::time::sleep(limit)), permit: None }
    }

    /// When it must have shown a key.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline.deadline()
    }

    /// Counts it among those who speak HTTP/2, and waits for its turn. None if that took too long.
    pub(super) async fn enter(
        &mut self,
        unauthenticated_clients: &Arc<UnauthenticatedClients>,
        connection: &Connection,
    ) -> Option<()> {
        let entering = timeout_at(self.deadline(), unauthenticated_clients.enter(connection));
        self.permit = Some(entering.await.ok()??);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(peers: &[&str]) -> VecDeque<Entry> {
        let one = |(connection, peer): (usize, &&str)| Entry {
            connection: connection as u64,
            peer: peer.parse().unwrap(),
            client_state: Arc::default(),
        };
        peers.iter().enumerate().map(one).collect()
    }

    #[test]
    fn the_oldest_of_the_address_with_the_most_goes_first() {
        let mut entries = entries(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.2", "10.0.0.4"]);
        let order: Vec<_> =
            std::iter::from_fn(|| remove_one(&mut entries)).map(|one| one.connection).collect();
        assert_eq!(order, [1, 0, 2, 3, 4]);
    }
}
