//! The conditions that a call waits for, and those that it does not.

use std::time::Duration;

use frazil_coord::LeaseState;
use frazil_coord::internal::rules::REQUEST_MAX;
use frazil_coord::internal::time::boot_time;
use frazil_id::NotReady;

use crate::lane::tick_of;
use crate::node::{Node, NotIssued};

/// Nobody wakes a waiting caller, so a longer wait looks around from time to time.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The waits of one call.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Until when it waits for a keeper that was held up, in boot time.
    until: Option<Duration>,
}

impl Waits {
    /// How long to wait before asking again.
    ///
    /// # Errors
    /// The reason itself, if it does not pass by itself soon.
    pub(crate) fn next(&mut self, node: &Node, why: NotIssued) -> Result<Duration, NotIssued> {
        match why {
            NotIssued::NotReady(why) if why.is_brief() => {
                Ok(why.retry_after().unwrap_or_default().min(LOOK_AGAIN))
            }
            why if node.is_held_up(&why) => {
                let now = boot_time();
                let until = *self.until.get_or_insert(now + REQUEST_MAX);
                if now < until { Ok(LOOK_AGAIN) } else { Err(why) }
            }
            other => Err(other),
        }
    }
}

impl Node {
    /// Whether IDs are refused although the lease is in order and good for more: the process was
    /// stopped, or its runtime was blocked, and the lease is looked at before it is used again. That
    /// passes by itself, within a request to the store.
    #[must_use]
    pub fn is_held_up(&self, why: &NotIssued) -> bool {
        let NotIssued::NotReady(NotReady::Horizon { horizon }) = why else { return false };
        self.shared.lanes.statuses().borrow().iter().any(|lane| {
            let granted = lane.grant.map_or(0, |grant| tick_of(&self.shared.layout, grant.horizon));
            lane.state == LeaseState::Held && granted > *horizon
        })
    }
}
