//! Watches: what a store announces changes over, and a watch that is had anew when it ends.

use std::future::pending;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::store::{Store, Watched};
use crate::time::doubled;

/// Announcements that slots changed. They may be too many, never too few; the end of them means
/// that the store's connection was lost and the watch must be renewed.
#[derive(Debug)]
pub struct Changes {
    announced: mpsc::Receiver<()>,
}

/// The other end of [`Changes`], for stores.
#[derive(Clone, Debug)]
pub struct Announcer(mpsc::Sender<()>);

impl Changes {
    /// A pair of ends.
    #[must_use]
    pub fn channel() -> (Announcer, Self) {
        // One waiting announcement says as much as many.
        let (sender, announced) = mpsc::channel(1);
        (Announcer(sender), Self { announced })
    }

    /// Waits for a change. `None`: the watch is over.
    pub async fn next(&mut self) -> Option<()> {
        self.announced.recv().await
    }
}

impl Announcer {
    /// Announces a change. `false`: nobody listens any more.
    #[must_use]
    pub fn announce(&self) -> bool {
        !matches!(self.0.try_send(()), Err(mpsc::error::TrySendError::Closed(())))
    }

    /// Whether nobody listens any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until nobody listens any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

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
        self.not_before = now + doubled(FIRST_PAUSE, self.failures, PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        match store.watch(&self.watched).await {
            Ok(changes) => self.changes = Some(changes),
            Err(error) => {
                tracing::debug!(error = %format_args!("{error:#}"), "no watch on the store")
            }
        }
    }

    /// Whether there is a watch, as far as it is known.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.changes.is_some()
    }

    /// Waits for a change, or for the end of the watch, after which changes are missed; for ever if
    /// there is no watch. Dropping this is safe.
    pub async fn changed_or_ended(&mut self) {
        let Some(changes) = &mut self.changes else { return pending().await };
        match changes.next().await {
            Some(()) => self.failures = 0,
            None => self.changes = None,
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
