//! Unauthenticated connections that hold buffers: only so many at once.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::net::connection_limits::address_group;
use crate::net::remote::Remote;

/// One too many waits for those before it for this part of the time that a client has to show a key (a quarter of a
/// second of ten), and as long is a client waited for before it is ended for another: who has a key and has just connected
/// is about to show it, and a crowd of such clients sends none of itself away.
const PATIENCE_PART: u32 = 40;
/// So many times as long has a client that has sent something of which nobody has decided yet whether it is let in. On
/// a busy machine it is the server that is late.
const UNDECIDED_TIMES: u32 = 8;

/// The connections that have shown no key yet and hold something. One too many waits a moment for a place;
/// then the oldest of the address with the most of them is ended, and the new one begins when that has given
/// back what it held. Those of whom not everything was read are left alone: the key may be in the rest.
#[derive(Debug)]
pub(crate) struct UnauthenticatedClients {
    /// The oldest first.
    entries: Mutex<VecDeque<Entry>>,
    permits: Arc<Semaphore>,
    patience: Duration,
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
    waiting: Mutex<Waiting>,
}

/// A connection that waits for its client.
#[derive(Debug, Default)]
struct Waiting {
    /// Since when it does, with everything read that has come.
    since: Option<Instant>,
    /// Whether something has come, and may still let it in.
    is_heard: bool,
    is_undecided: bool,
    /// Whom to wake when it is to end.
    waker: Option<Waker>,
}

impl Cut {
    /// Ends the connection.
    pub(crate) fn cut(&self) {
        // Relaxed: whoever leaves a waker after this sees the word: the lock orders them.
        self.is_cut.store(true, Ordering::Relaxed);
        let waker = self.waiting().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Lets the connection go on after all, unless it has ended.
    pub(crate) fn spare(&self) {
        // Relaxed: see `cut`.
        self.is_cut.store(false, Ordering::Relaxed);
    }

    /// Ready when the connection is to end. To be asked when everything was read that the client has sent.
    pub(crate) fn poll_cut(&self, context: &Context<'_>) -> Poll<()> {
        let mut waiting = self.waiting();
        waiting.since.get_or_insert_with(Instant::now);
        if !waiting.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            waiting.waker = Some(context.waker().clone());
        }
        // Relaxed: see `cut`.
        if self.is_cut.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Ends when the connection is to end. To be polled after what reads of the client.
    pub(crate) async fn wait(&self) {
        poll_fn(|context| self.poll_cut(context)).await;
    }

    /// Notes that the client has sent something that may let it in.
    pub(crate) fn heard(&self) {
        let mut waiting = self.waiting();
        if !std::mem::replace(&mut waiting.is_heard, true) {
            (waiting.is_undecided, waiting.since) = (true, None);
        }
    }

    /// Notes that what the client has sent does not let it in.
    pub(crate) fn decided(&self) {
        let mut waiting = self.waiting();
        if std::mem::take(&mut waiting.is_undecided) {
            waiting.since = Some(Instant::now());
        }
    }

    /// Whether the client has been waited for long enough at that time.
    fn is_due(&self, now: Instant, patience: Duration) -> bool {
        let Waiting { since, is_undecided, .. } = &*self.waiting();
        let patience = if *is_undecided { patience * UNDECIDED_TIMES } else { patience };
        since.is_some_and(|since| now.duration_since(since) >= patience)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Keeps so many at once, of clients that have so long to show a key.
    pub(crate) fn new(most: usize, limit: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(most));
        Self { entries: Mutex::default(), permits, patience: limit / PATIENCE_PART }
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
            match tokio::time::timeout(self.patience, &mut acquiring).await {
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

    /// Ends one, unless all of them have just come.
    fn end_one(&self) {
        // Cut while the list is locked: a permit that is given back later spares nobody who was cut after.
        let mut entries = self.entries();
        if let Some(ended) = remove_one(&mut entries, Instant::now(), self.patience) {
            ended.cut.cut();
        }
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the oldest of the address with the most of those that were waited for long enough.
fn remove_one(entries: &mut VecDeque<Entry>, now: Instant, patience: Duration) -> Option<Entry> {
    let mut by_peer: HashMap<IpAddr, usize> = HashMap::new();
    let due: Vec<bool> = entries.iter().map(|one| one.cut.is_due(now, patience)).collect();
    for (one, _) in entries.iter().zip(&due).filter(|(_, is_due)| **is_due) {
        *by_peer.entry(one.peer).or_default() += 1;
    }
    let most = by_peer.values().max()?;
    let is_first = |(one, is_due): (&Entry, &bool)| *is_due && by_peer.get(&one.peer) == Some(most);
    let place = entries.iter().zip(&due).position(is_first)?;
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
    use crate::config::Limits;
    use crate::net::connection_limits::AllConnectionLimits;

    const PATIENCE: Duration = Duration::from_millis(250);

    fn entries(peers: &[&str]) -> VecDeque<Entry> {
        let one = |(connection, peer): (usize, &&str)| Entry {
            connection: connection as u64,
            peer: peer.parse().unwrap(),
            cut: Arc::default(),
        };
        peers.iter().enumerate().map(one).collect()
    }

    fn order(entries: &mut VecDeque<Entry>, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| remove_one(entries, now, PATIENCE))
            .map(|one| one.connection)
            .collect()
    }

    #[test]
    fn the_oldest_of_the_address_with_the_most_goes_first() {
        let mut entries = entries(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.2", "10.0.0.4"]);
        let now = Instant::now();
        entries.iter().for_each(|one| one.cut.waiting().since = Some(now));
        assert_eq!(order(&mut entries, now + PATIENCE), [1, 0, 2, 3, 4]);
    }

    #[test]
    fn who_was_not_read_to_the_end_or_not_waited_for_is_left_alone() {
        let mut entries = entries(&["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"]);
        let now = Instant::now();
        for (place, since) in [(1, now + PATIENCE), (2, now), (3, now)] {
            entries[place].cut.waiting().since = Some(since);
        }
        assert_eq!(order(&mut entries, now + PATIENCE), [2, 3]);
        assert_eq!(order(&mut entries, now + PATIENCE * 2), [1]);
        assert_eq!(entries.len(), 1);
    }

    #[test]
    fn who_may_still_be_let_in_is_waited_for_longer_until_it_is_decided() {
        let mut entries = entries(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
        let context = Context::from_waker(Waker::noop());
        for place in [0, 1] {
            entries[place].cut.heard();
        }
        assert!(entries.iter().all(|one| one.cut.poll_cut(&context).is_pending()));
        entries[1].cut.decided();
        let now = Instant::now();
        assert_eq!(order(&mut entries, now + PATIENCE), [1, 2]);
        assert_eq!(order(&mut entries, now + PATIENCE * UNDECIDED_TIMES), [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_admitted_while_it_is_ended_goes_on() {
        let clients = Arc::new(UnauthenticatedClients::new(1, PATIENCE * PATIENCE_PART));
        let limits = AllConnectionLimits::new(&Limits::default(), &Arc::default()).grpc;
        let peer = "10.0.0.1".parse().unwrap();
        let remote = Remote::new(peer, &limits.take(peer).unwrap());
        let cut = Arc::new(Cut::default());
        let permit = clients.enter(&remote, &cut).await;
        let context = Context::from_waker(Waker::noop());
        assert!(cut.poll_cut(&context).is_pending());
        tokio::time::advance(PATIENCE).await;
        clients.end_one();
        assert!(cut.poll_cut(&context).is_ready());
        drop(permit);
        cut.spare();
        clients.end_one();
        assert!(cut.poll_cut(&context).is_pending());
    }
}
