//! Connections without a key: for a time, and only so many at once.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, timeout_at};

use super::incoming::{Connection, Standing};
use crate::net::connection_limits::neighbourhood;

/// Connections that speak HTTP/2 and have shown no key: each holds some forty kilobytes, and the
/// windows bound it at a hundred. Who has a key shows it with the first call, and balancers that
/// probe without one are fewer.
const STRANGERS_MAX: usize = 128;

/// The connections that have shown no key. Where one too many comes, the oldest of the address with
/// the most of them is ended, and the new one begins when that has given back what it held.
#[derive(Debug)]
pub(super) struct Strangers {
    /// The oldest first.
    inside: Mutex<VecDeque<Inside>>,
    permits: Arc<Semaphore>,
}

#[derive(Debug)]
struct Inside {
    connection: u64,
    peer: IpAddr,
    standing: Arc<Standing>,
}

/// One of them, for as long as it is kept.
#[derive(Debug)]
struct Counted {
    strangers: Arc<Strangers>,
    connection: u64,
    _permit: OwnedSemaphorePermit,
}

impl Default for Strangers {
    fn default() -> Self {
        Self { inside: Mutex::default(), permits: Arc::new(Semaphore::new(STRANGERS_MAX)) }
    }
}

impl Strangers {
    /// None if the semaphore was closed, which nobody does.
    async fn enter(self: &Arc<Self>, connection: &Connection) -> Option<Counted> {
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.end_one();
                self.permits.clone().acquire_owned().await.ok()?
            }
        };
        let Connection { remote, standing } = connection;
        let (connection, peer) = (remote.connection, neighbourhood(remote.address));
        self.inside().push_back(Inside { connection, peer, standing: standing.clone() });
        Some(Counted { strangers: self.clone(), connection, _permit: permit })
    }

    fn end_one(&self) {
        let ended = remove_one(&mut self.inside());
        if let Some(ended) = ended {
            ended.standing.cut();
        }
    }

    fn inside(&self) -> MutexGuard<'_, VecDeque<Inside>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the oldest of the address with the most.
fn remove_one(inside: &mut VecDeque<Inside>) -> Option<Inside> {
    let mut by_peer: HashMap<IpAddr, usize> = HashMap::new();
    for one in &*inside {
        *by_peer.entry(one.peer).or_default() += 1;
    }
    let most = by_peer.values().max()?;
    let place = inside.iter().position(|one| by_peer.get(&one.peer) == Some(most))?;
    inside.remove(place)
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut inside = self.strangers.inside();
        if let Some(place) = inside.iter().position(|one| one.connection == self.connection) {
            inside.remove(place);
        }
    }
}

/// A client without a key.
#[derive(Debug)]
pub(super) struct Stranger {
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
    counted: Option<Counted>,
}

impl Stranger {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, deadline: Box::pin(tokio::time::sleep(limit)), counted: None }
    }

    /// When it must have shown a key.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline.deadline()
    }

    /// Counts it among those who speak HTTP/2, and waits for its turn. None if that took too long.
    pub(super) async fn enter(
        &mut self,
        strangers: &Arc<Strangers>,
        connection: &Connection,
    ) -> Option<()> {
        let entering = timeout_at(self.deadline(), strangers.enter(connection));
        self.counted = Some(entering.await.ok()??);
        Some(())
    }

    /// Ends when there was neither a key nor a probe for too long.
    pub(super) fn poll_overstayed(
        &mut self,
        standing: &Standing,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        while self.deadline.as_mut().poll(context).is_ready() {
            if !standing.has_probed() {
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

    fn inside(peers: &[&str]) -> VecDeque<Inside> {
        let one = |(connection, peer): (usize, &&str)| Inside {
            connection: connection as u64,
            peer: peer.parse().unwrap(),
            standing: Arc::default(),
        };
        peers.iter().enumerate().map(one).collect()
    }

    #[test]
    fn the_oldest_of_the_address_with_the_most_goes_first() {
        let mut inside = inside(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.2", "10.0.0.4"]);
        let order: Vec<_> =
            std::iter::from_fn(|| remove_one(&mut inside)).map(|one| one.connection).collect();
        assert_eq!(order, [1, 0, 2, 3, 4]);
    }
}
