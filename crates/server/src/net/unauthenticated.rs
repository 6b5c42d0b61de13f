//! Unauthenticated connections that hold buffers: only so many at once.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::net::connection_limits::address_group;
use crate::net::remote::Remote;

/// How long one too many waits for those before it: who has a key and has just connected is about to show
/// it, and a crowd of such clients sends none of itself away.
const PATIENCE: Duration = Duration::from_millis(250);

/// The connections that have shown no key yet and hold something. One too many waits a moment for a place;
/// then the oldest of the address with the most of them is ended, and the new one begins when that has given
/// back what it held.
#[derive(Debug)]
pub(crate) struct UnauthenticatedClients {
    /// The oldest first.
    entries: Mutex<VecDeque<Entry>>,
    permits: Arc<Semaphore>,
}

#[derive(Debug)]
struct Entry {
    connection: u64,
    peer: IpAddr,
    cut: Arc<Cut>,
}

/// Whether a connection is to end, from another task.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    is_cut: AtomicBool,
    /// Whom to wake when it is.
    waker: Mutex<Option<Waker>>,
}

impl Cut {
    /// Ends the connection.
    pub(crate) fn cut(&self) {
        // Relaxed: whoever leaves a waker after this sees the word: the lock orders them.
        self.is_cut.store(true, Ordering::Relaxed);
        let waker = self.waker().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready when the connection is to end.
    pub(crate) fn poll_cut(&self, context: &Context<'_>) -> Poll<()> {
        let mut waker = self.waker();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        // Relaxed: see `cut`.
        if self.is_cut.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Ends when the connection is to end.
    pub(crate) async fn wait(&self) {
        poll_fn(|context| self.poll_cut(context)).await;
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to be one of them, for as long as it is kept.
#[derive(Debug)]
pub(crate) struct UnauthenticatedPermit {
    unauthenticated_clients: Arc<UnauthenticatedClients>,
    connection: u64,
    _permit: OwnedSemaphorePermit,
}

impl UnauthenticatedClients {
    /// Keeps so many at once.
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: Mutex::default(), permits: Arc::new(Semaphore::new(most)) }
    }

    /// Waits for a place. None if the semaphore was closed, which nobody does.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        remote: &Remote,
        cut: &Arc<Cut>,
    ) -> Option<UnauthenticatedPermit> {
        let acquiring = self.permits.clone().acquire_owned();
        tokio::pin!(acquiring);
        let permit = loop {
            match tokio::time::timeout(PATIENCE, &mut acquiring).await {
                Ok(permit) => break permit.ok()?,
                Err(_) => self.end_one(),
            }
        };
        let (connection, peer) = (remote.connection, address_group(remote.address));
        self.entries().push_back(Entry { connection, peer, cut: cut.clone() });
        Some(UnauthenticatedPermit {
            unauthenticated_clients: self.clone(),
            connection,
            _permit: permit,
        })
    }

    fn end_one(&self) {
        let ended = remove_one(&mut self.entries());
        if let Some(ended) = ended {
            ended.cut.cut();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(peers: &[&str]) -> VecDeque<Entry> {
        let one = |(connection, peer): (usize, &&str)| Entry {
            connection: connection as u64,
            peer: peer.parse().unwrap(),
            cut: Arc::default(),
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
