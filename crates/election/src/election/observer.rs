//! The observer of an election: it follows the leader without contending.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use frazil_coord::{Error, Slot, Token};
use tokio::sync::watch;

use super::Elections;
use super::info::LeaderInfo;
use super::slot_watcher::{SlotWatcher, View};

/// Sees who leads an election.
#[derive(Debug)]
pub struct Observer {
    elections: Elections,
    slot: Slot,
    watcher: Arc<SlotWatcher>,
    views: watch::Receiver<Arc<View>>,
    /// The token of the leader that was told of last; `None` before anything was.
    told: Option<Option<Token>>,
    /// When the look was asked for that was told of last, in boot time.
    asked: Duration,
}

/// Should the store not tell of a change, it is looked for this often.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

impl Observer {
    pub(super) fn new(elections: Elections, slot: Slot) -> Self {
        let watcher = elections.watcher(&slot);
        let views = watcher.subscribe();
        watcher.look();
        Self { elections, slot, watcher, views, told: None, asked: Duration::ZERO }
    }

    /// The leader as it was last seen; `None` also before the store was looked at. If that was more
    /// than a few seconds ago, the store is looked at again for whoever asks next, so that the last
    /// heartbeat is not an old one; see also [`fetch`](Self::fetch).
    #[must_use]
    pub fn leader(&self) -> Option<LeaderInfo> {
        let view = self.views.borrow();
        if boot_time().saturating_sub(view.asked) > LOOK_AGAIN {
            self.watcher.look();
        }
        view.entries.get(self.slot.name()).and_then(LeaderInfo::of)
    }

    /// What was last seen of the election, now and whenever that changes, for as long as this observer
    /// is kept. It costs the same whatever other elections there are.
    #[must_use]
    pub fn view(&self) -> watch::Receiver<Arc<View>> {
        self.views.clone()
    }

    /// Waits until somebody else leads than was told of last, or nobody does; the first time until
    /// it is known who does. Dropping this misses nothing.
    pub async fn changed(&mut self) -> Option<LeaderInfo> {
        loop {
            let leader = self.looked().await;
            if self.is_news(leader.as_ref()) {
                return leader;
            }
        }
    }

    /// Waits until the store was looked at since this was called last, which is at least every few
    /// seconds; the leader as it was seen then. Dropping this misses nothing.
    pub async fn looked(&mut self) -> Option<LeaderInfo> {
        loop {
            let view = self.views.borrow_and_update().clone();
            if view.asked > self.asked {
                self.asked = view.asked;
                return view.entries.get(self.slot.name()).and_then(LeaderInfo::of);
            }
            tokio::select! {
                // The watcher outlives this.
                _ = self.views.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {
                    self.watcher.look();
                }
            }
        }
    }

    /// Whether this is not the leader that was told of last; it is from here on.
    pub(super) fn is_news(&mut self, leader: Option<&LeaderInfo>) -> bool {
        let token = Some(leader.map(|leader| leader.token));
        std::mem::replace(&mut self.told, token) != token
    }

    /// The leader as the store has it now, its last heartbeat included.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn fetch(&self) -> Result<Option<LeaderInfo>, Error> {
        self.elections.leader_of(&self.slot).await
    }
}
