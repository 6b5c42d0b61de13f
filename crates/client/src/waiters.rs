//! Those who wait for IDs, in the order in which they came.

use std::collections::VecDeque;

use frazil_id::Id;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::sizing::Sizing;

/// What one who waits is told.
pub(crate) type Outcome = Result<Id, Error>;

/// The queue, and whether somebody is fetching for it. One fetches at a time: whoever comes
/// meanwhile is served together with all others by the next request.
#[derive(Debug)]
pub(crate) struct Waiters {
    waiting: VecDeque<oneshot::Sender<Outcome>>,
    is_fetching: bool,
    is_closed: bool,
    /// How many were served here.
    served: u64,
    sizing: Option<Sizing>,
}

/// What to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchRequest {
    pub(crate) count: u32,
    /// How many are waiting for it.
    pub(crate) waiting: usize,
}

/// A place in the queue.
#[derive(Debug)]
pub(crate) struct QueuedWaiter {
    pub(crate) outcome: oneshot::Receiver<Outcome>,
    /// Nobody is fetching: whoever got this place has to see to it.
    pub(crate) must_fetch: bool,
}

impl Waiters {
    pub(crate) const fn new(sizing: Option<Sizing>) -> Self {
        Self { waiting: VecDeque::new(), is_fetching: false, is_closed: false, served: 0, sizing }
    }

    pub(crate) fn join(&mut self) -> Result<QueuedWaiter, Error> {
        if self.is_closed {
            return Err(Error::Closed);
        }
        let (sender, outcome) = oneshot::channel();
        self.waiting.push_back(sender);
        Ok(QueuedWaiter { outcome, must_fetch: !std::mem::replace(&mut self.is_fetching, true) })
    }

    /// Whether the caller has to fetch ahead.
    pub(crate) const fn begin_refill(&mut self) -> bool {
        if self.is_fetching || self.is_closed || self.sizing.is_none() {
            return false;
        }
        self.is_fetching = true;
        true
    }

    /// What to ask for next. `None`: nothing, and nobody is fetching any more.
    pub(crate) fn order(
        &mut self,
        limit: u32,
        now_ns: u64,
        pool: PoolLevel,
        is_first: bool,
    ) -> Option<FetchRequest> {
        self.waiting.retain(|waiting| !waiting.is_closed());
        let waiting = self.waiting.len().min(limit as usize);
        let fetches_ahead = !pool.has_spare && (is_first || waiting > 0);
        let ahead = match &mut self.sizing {
            Some(sizing) if fetches_ahead || waiting > 0 => {
                sizing.next(now_ns, self.served + pool.handed_out, limit)
            }
            _ => 0,
        };
        let wanted = u32::try_from(waiting).unwrap_or(limit).saturating_add(ahead);
        if self.is_closed || wanted == 0 {
            self.is_fetching = false;
            return None;
        }
        Some(FetchRequest { count: wanted.min(limit), waiting })
    }

    /// Serves those who wait, and gives back what they do not want.
    pub(crate) fn serve(&mut self, ids: Vec<Id>) -> Vec<Id> {
        let mut given = 0;
        for id in &ids {
            // One who left gives it back, and the next one gets it.
            let was_given = loop {
                let Some(waiting) = self.waiting.pop_front() else { break false };
                if waiting.send(Ok(*id)).is_ok() {
                    break true;
                }
            };
            if !was_given {
                break;
            }
            given += 1;
        }
        self.served += given as u64;
        let mut ids = ids;
        ids.split_off(given)
    }

    /// Tells those for whom a request failed.
    pub(crate) fn fail(&mut self, how_many: usize, error: &Error) {
        for waiting in self.waiting.drain(..how_many.min(self.waiting.len())) {
            let _ = waiting.send(Err(error.clone()));
        }
    }

    /// Whoever fetched is gone: those who wait find out and see to it themselves.
    pub(crate) fn abandon(&mut self) {
        self.is_fetching = false;
        self.waiting.clear();
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.fail(usize::MAX, &Error::Closed);
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) const fn fetches_ahead(&self) -> bool {
        self.sizing.is_some()
    }
}

/// What the pool has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolLevel {
    pub(crate) handed_out: u64,
    pub(crate) has_spare: bool,
}
