//! Following a leader without contending.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::{Slot, Token};
use tokio::sync::watch;

use super::Elections;
use super::board::View;
use super::info::LeaderInfo;

/// Sees who leads an election.
#[derive(Debug)]
pub struct Observer {
    elections: Elections,
    slot: Slot,
    views: watch::Receiver<Arc<View>>,
    /// The token of the leader that was told of last; `None` before anything was.
    told: Option<Option<Token>>,
}

/// Should the store not tell of a change, it is looked for this often.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

impl Observer {
    pub(super) fn new(elections: Elections, slot: Slot) -> Self {
        let board = elections.board(slot.group());
        let views = board.subscribe();
        board.look();
        Self { elections, slot, views, told: None }
    }

    /// The leader as it was last seen; `None` also before the store was looked at.
    #[must_use]
    pub fn leader(&self) -> Option<LeaderInfo> {
        self.views.borrow().entries.get(self.slot.name()).and_then(LeaderInfo::of)
    }

    /// Whether the store was looked at yet.
    #[must_use]
    pub fn has_seen(&self) -> bool {
        !self.views.borrow().asked.is_zero()
    }

    /// Waits until somebody else leads than was told of last, or nobody does; the first time until
    /// it is known who does. Dropping this misses nothing.
    pub async fn changed(&mut self) -> Option<LeaderInfo> {
        loop {
            let view = self.views.borrow_and_update().clone();
            if !view.asked.is_zero() {
                let leader = view.entries.get(self.slot.name()).and_then(LeaderInfo::of);
                let token = leader.as_ref().map(|leader| leader.token);
                if self.told != Some(token) {
                    self.told = Some(token);
                    return leader;
                }
            }
            tokio::select! {
                // The board outlives this.
                _ = self.views.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {
                    self.elections.board(self.slot.group()).look();
                }
            }
        }
    }
}
