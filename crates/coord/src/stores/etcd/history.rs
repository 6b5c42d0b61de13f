//! The history of an etcd cluster: its revisions never fall, unless it was restored from a backup.

use std::sync::Mutex;

use frazil_etcd::{OperationResponse, TxnResponse};

use crate::sync::lock;

/// The furthest point of the store's history that was seen.
///
/// Only answers of transactions count: they go through the majority, so whoever asks after having
/// seen a revision gets at least that one, from whichever member. A store restored from a snapshot
/// answers with less. That is said once; from then on its new history is what counts, so that
/// whoever was told can write down that something was forgotten. Every other tenure finds out by
/// its own record, which is gone or older than it was.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Position>);

/// What an answer to a request sent now must not fall behind of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Position {
    cluster: Option<u64>,
    revision: i64,
}

impl History {
    /// To be asked before a request is sent: answers may overtake each other.
    pub(super) fn position(&self) -> Position {
        *lock(&self.0)
    }

    /// To be told what the answer was. Whether the store has not gone back.
    pub(super) fn observe(&self, before: Position, answer: &TxnResponse) -> bool {
        answer.header.is_none_or(|header| {
            let now = Position { cluster: Some(header.cluster_id), revision: header.revision };
            self.advance(before, now, has_put(answer))
        })
    }

    fn advance(&self, before: Position, now: Position, has_put: bool) -> bool {
        let mut furthest = lock(&self.0);
        let is_same = before.cluster.is_none() || before.cluster == now.cluster;
        // What was put has a revision of its own, which must not hide one that was lost.
        if !is_same || now.revision - i64::from(has_put) < before.revision {
            *furthest = now;
            return false;
        }
        *furthest = Position { revision: furthest.revision.max(now.revision), ..now };
        true
    }
}

/// Whether a transaction, or one within it, has put a key.
fn has_put(answer: &TxnResponse) -> bool {
    answer.responses.iter().any(|response| match &response.response {
        Some(OperationResponse::ResponsePut(_)) => true,
        Some(OperationResponse::ResponseTxn(nested)) => has_put(nested),
        Some(OperationResponse::ResponseRange(_) | OperationResponse::ResponseDeleteRange(_))
        | None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(cluster: u64, revision: i64) -> Position {
        Position { cluster: Some(cluster), revision }
    }

    #[test]
    fn answers_that_overtake_each_other_are_no_regression() {
        let history = History::default();
        let (first, second) = (history.position(), history.position());
        assert!(history.advance(second, at(1, 12), false));
        assert!(history.advance(first, at(1, 10), true));
        assert_eq!(history.position().revision, 12);
    }

    #[test]
    fn a_lower_revision_is_a_regression_and_then_where_history_goes_on() {
        let history = History::default();
        assert!(history.advance(history.position(), at(1, 12), true));
        assert!(!history.advance(history.position(), at(1, 11), false));
        assert!(history.advance(history.position(), at(1, 11), false));
        assert!(!history.advance(history.position(), at(1, 10), false));
    }

    #[test]
    fn what_is_written_does_not_hide_what_was_lost() {
        let history = History::default();
        assert!(history.advance(history.position(), at(1, 12), true));
        assert!(history.advance(history.position(), at(1, 13), true));
        assert!(!history.advance(history.position(), at(1, 13), true));
    }

    #[test]
    fn another_cluster_is_a_regression() {
        let history = History::default();
        assert!(history.advance(history.position(), at(1, 12), false));
        assert!(!history.advance(history.position(), at(2, 13), false));
    }
}
