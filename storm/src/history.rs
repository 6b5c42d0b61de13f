//! What was asked and answered, as the clients saw it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// One process of one node: a node that is started again is another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct ProcessRun {
    pub(crate) node: usize,
    pub(crate) start: u32,
}

/// How far the time in an ID may be from the true one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) behind_ms: i64,
    pub(crate) ahead_ms: i64,
}

impl Tolerance {
    /// What either of two allows.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            behind_ms: self.behind_ms.max(other.behind_ms),
            ahead_ms: self.ahead_ms.max(other.ahead_ms),
        }
    }
}

/// IDs that were received.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) process_run: ProcessRun,
    pub(crate) connection: u32,
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
    pub(crate) asked_unix_ms: i64,
    pub(crate) answered_unix_ms: i64,
    pub(crate) tolerance: Tolerance,
    /// Not every protocol tells it.
    pub(crate) token: Option<u64>,
    pub(crate) ids: Vec<u64>,
}

/// IDs that an application got from a client: whose they are is not told, and they come in any order.
#[derive(Debug)]
pub(crate) struct UnorderedIds {
    pub(crate) asked_unix_ms: i64,
    pub(crate) answered_unix_ms: i64,
    pub(crate) tolerance: Tolerance,
    pub(crate) ids: Vec<u64>,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// So many IDs.
    Ids(u32),
    /// The node said no, and why.
    Refused(String),
    /// No answer: whether IDs were issued is not known, and nobody has them.
    Lost,
}

/// One request of one client.
#[derive(Clone, Debug)]
pub(crate) struct RequestRecord {
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
    pub(crate) outcome: Outcome,
}

impl RequestRecord {
    pub(crate) fn ids(&self) -> u64 {
        match self.outcome {
            Outcome::Ids(count) => count.into(),
            _ => 0,
        }
    }
}

/// How the requests to each node ended; written by all connections while the run goes on.
#[derive(Debug)]
pub(crate) struct Record {
    nodes: Vec<Mutex<Vec<RequestRecord>>>,
}

impl Record {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { nodes: (0..nodes).map(|_| Mutex::new(Vec::new())).collect() }
    }

    /// How many nodes there are.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn add(&self, node: usize, mark: RequestRecord) {
        self.of(node).push(mark);
    }

    /// When a request that was sent at or after a moment was first answered with IDs.
    pub(crate) fn first_answer(&self, node: usize, since: Duration) -> Option<Duration> {
        let marks = self.of(node);
        let later = marks.iter().filter(|mark| mark.asked >= since && mark.ids() > 0);
        later.map(|mark| mark.answered).min()
    }

    /// The last time at which a node gave IDs.
    pub(crate) fn last_answer(&self, node: usize, before: Duration) -> Option<Duration> {
        let marks = self.of(node);
        let earlier = marks.iter().filter(|mark| mark.answered < before && mark.ids() > 0);
        earlier.map(|mark| mark.answered).max()
    }

    /// The marks of one node within a stretch of time.
    pub(crate) fn between(
        &self,
        node: usize,
        begin: Duration,
        end: Duration,
    ) -> Vec<RequestRecord> {
        let marks = self.of(node);
        let inside = marks.iter().filter(|mark| mark.asked >= begin && mark.answered <= end);
        inside.cloned().collect()
    }

    pub(crate) fn fold<T>(&self, first: T, mut step: impl FnMut(T, &RequestRecord) -> T) -> T {
        let mut value = first;
        for node in 0..self.nodes.len() {
            for mark in self.of(node).iter() {
                value = step(value, mark);
            }
        }
        value
    }

    fn of(&self, node: usize) -> MutexGuard<'_, Vec<RequestRecord>> {
        self.nodes[node].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_recovered_once_it_gave_ids_for_what_was_asked_since() {
        let record = Record::new(1);
        let second = Duration::from_secs;
        let add = |asked, answered, outcome| {
            record.add(
                0,
                RequestRecord { asked: second(asked), answered: second(answered), outcome },
            );
        };
        add(1, 6, Outcome::Ids(1));
        add(5, 6, Outcome::Refused("NO_WORKER".to_owned()));
        add(6, 7, Outcome::Lost);
        assert_eq!(record.first_answer(0, second(5)), None, "asked before, refused, or lost");
        add(7, 9, Outcome::Ids(1));
        add(8, 8, Outcome::Ids(1));
        assert_eq!(record.first_answer(0, second(5)), Some(second(8)));
    }
}
