//! Whether the store still is what it was: revisions of one cluster never fall.

use std::sync::{Mutex, MutexGuard, PoisonError};

use etcd_client::ResponseHeader;

/// The furthest point of the store's history that was seen.
///
/// Only answers of transactions count: they go through the majority, so whoever asks after having
/// seen a revision gets at least that one, from whichever member. A store restored from a snapshot
/// answers with less. That is said once; from then on its new history is what counts, so that
/// whoever was told can write down that something was forgotten. Every other tenure finds out by
/// its own record, which is gone or older than it was.
#[derive(Debug, Default)]
pub(super) struct History {
    seen: Mutex<Seen>,
}

/// What an answer to a request sent now must not fall behind of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Seen {
    cluster: Option<u64>,
    revision: i64,
}

/// The store went back in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regressed;

impl History {
    /// To be asked before a request is sent: answers may overtake each other.
    pub(super) fn seen(&self) -> Seen {
        *self.lock()
    }

    /// To be told what the answer said.
    pub(super) fn observe(
        &self,
        before: Seen,
        header: Option<&ResponseHeader>,
    ) -> Result<(), Regressed> {
        match header {
            Some(header) => self.advance(before, header.cluster_id(), header.revision()),
            None => Ok(()),
        }
    }

    fn advance(&self, before: Seen, cluster: u64, revision: i64) -> Result<(), Regressed> {
        let mut seen = self.lock();
        let is_same = before.cluster.is_none_or(|known| known == cluster);
        if !is_same || revision < before.revision {
            *seen = Seen { cluster: Some(cluster), revision };
            return Err(Regressed);
        }
        seen.cluster = Some(cluster);
        seen.revision = seen.revision.max(revision);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        // Every change is complete before anything can panic.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_overtake_each_other_are_no_regression() {
        let history = History::default();
        let (first, second) = (history.seen(), history.seen());
        assert_eq!(history.advance(second, 1, 12), Ok(()));
        assert_eq!(history.advance(first, 1, 10), Ok(()));
        assert_eq!(history.seen().revision, 12);
    }

    #[test]
    fn a_lower_revision_is_a_regression_and_then_where_history_goes_on() {
        let history = History::default();
        history.advance(history.seen(), 1, 12).unwrap();
        assert_eq!(history.advance(history.seen(), 1, 11), Err(Regressed));
        assert_eq!(history.advance(history.seen(), 1, 11), Ok(()));
        assert_eq!(history.advance(history.seen(), 1, 10), Err(Regressed));
    }

    #[test]
    fn another_cluster_is_a_regression() {
        let history = History::default();
        history.advance(history.seen(), 1, 12).unwrap();
        assert_eq!(history.advance(history.seen(), 2, 13), Err(Regressed));
    }
}
