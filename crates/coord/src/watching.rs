//! A watch on a store, had anew when it ends.

use std::future::pending;
use std::time::Duration;

use crate::store::{Changes, Store, Watched};

/// After a watch that could not be had, or ended; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest such pause. A full pool is asked again every few seconds in any case, so a watch
/// that comes later than this after the store is well again costs nobody more than that.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A watch on a kind of slots, had anew when it ended.
#[derive(Debug)]
pub struct Watching {
    watched: Watched,
    changes: Option<Changes>,
    /// Watches in a row that could not be had, or ended without a word.
    failures: u32,
    /// No watch is asked for before this boot time.
    not_before: Duration,
}

impl Watching {
    /// Nothing is watched yet.
    #[must_use]
    pub const fn new(watched: Watched) -> Self {
        Self { watched, changes: None, failures: 0, not_before: Duration::ZERO }
    }

    /// Makes sure that there is a watch, unless one failed a short while ago.
    pub async fn begin(&mut self, store: &dyn Store, now: Duration) {
        if self.changes.is_some() || now < self.not_before {
            return;
        }
        // Until it proves to be of use it counts as one that fails.
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(10));
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + pause.min(PAUSE_MAX);
        match store.watch(&self.watched).await {
            Ok(changes) => self.changes = Some(changes),
            Err(error) => tracing::debug!(%error, "no watch on the store"),
        }
    }

    /// Waits for a change; for ever if there is no watch, or if it ends. Dropping this is safe.
    pub async fn changed(&mut self) {
        if let Some(changes) = &mut self.changes {
            if changes.next().await.is_some() {
                self.failures = 0;
                return;
            }
            self.changes = None;
        }
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::slot::Group;
    use crate::stores::memory::MemoryStore;
    use crate::wrappers::{Chances, Faulty};

    /// The boot times, in milliseconds, at which a watch was asked for within ten minutes.
    async fn asked_at(store: &Faulty) -> Vec<u64> {
        let (mut watching, mut asked) = (Watching::new(Watched::Group(Group::Workers)), Vec::new());
        for now in (0..600_000).step_by(500) {
            let before = store.faults().requests_lost;
            watching.begin(store, Duration::from_millis(now)).await;
            if store.faults().requests_lost > before {
                asked.push(now);
            }
        }
        asked
    }

    #[tokio::test]
    async fn a_watch_that_cannot_be_had_is_asked_for_less_and_less_often() {
        let chances = Chances { request_lost: 1000, ..Chances::default() };
        let store = Faulty::new(Arc::new(MemoryStore::new()), chances, 1);
        let asked = asked_at(&store).await;
        assert_eq!(asked[..5], [0, 500, 1500, 3500, 7500]);
        let limit = u64::try_from(PAUSE_MAX.as_millis()).unwrap();
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= limit), "{asked:?}");
        assert!(asked.len() > 20, "it is given up after {asked:?}");
    }

    #[tokio::test]
    async fn a_watch_that_told_of_something_is_renewed_soon_when_it_ends() {
        let store = MemoryStore::new();
        let mut watching =
            Watching { failures: 9, ..Watching::new(Watched::Group(Group::Workers)) };
        watching.begin(&store, Duration::ZERO).await;
        store.wipe();
        watching.changed().await;
        assert_eq!(watching.failures, 0);
    }
}
