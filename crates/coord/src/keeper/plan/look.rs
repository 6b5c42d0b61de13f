//! Looking at the whole pool now and then: how full it is, and what others' clocks say.

use std::time::Duration;

use super::{Next, Now, Plan};
use crate::choose::candidates;
use crate::error::Error;
use crate::keeper::status::{ClockSkew, Judge, LeaseState, Pool};
use crate::lease::{Census, Claim};
use crate::rules::WINDOW_MAX_MS;
use crate::store::{Entry, Look, Vacancies, Wanted};

/// Between two looks, at least: soon enough to tell of a pool that fills up.
const LOOK_PAUSE: Duration = Duration::from_mins(2);
/// More for each slot that was seen, so that all holders together read some thousand records in a
/// second, however many they are.
const LOOK_PAUSE_PER_SLOT: Duration = Duration::from_secs(1);

impl Plan {
    /// Asks for a look.
    pub(super) fn look(&mut self, now: Now) -> Next {
        self.look_asked = now.boot;
        Next::Look
    }

    /// When a new holder looks for the first time: a heartbeat later, and then not all at once. In a
    /// crowd that starts together each look reads as many records as there are in it, and those who
    /// still seek would wait for all of that.
    pub(super) fn first_look(&self, now: Now) -> Duration {
        let chance = u32::try_from(now.nonce.bits() % 256).expect("less than 256");
        let heartbeat = self.setup.timing.heartbeat;
        now.boot + heartbeat + heartbeat * (256 - chance) / 256
    }

    /// The pool was looked at.
    pub fn looked(&mut self, now: Now, seen: Result<Vec<Entry>, Error>) {
        self.ended();
        let heartbeat = self.setup.timing.heartbeat;
        let Ok(entries) = seen else {
            // A renewal or a claim will tell whether the store is in trouble.
            self.peers.saw_nothing();
            self.look_at = now.boot + heartbeat;
            return;
        };
        let slots = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let long = LOOK_PAUSE.max(LOOK_PAUSE_PER_SLOT.saturating_mul(slots));
        let mut pause = long;
        if !self.store_has_clock {
            let window_ms = self.meta.as_ref().map_or(WINDOW_MAX_MS, |meta| meta.value.window_ms);
            let window = Duration::from_millis(window_ms);
            self.peers.saw(&entries, &self.setup.holder, window, self.look_asked, now);
            let agrees = self.trust(now);
            // Of two looks soon after each other the second tells what clocks others have; while
            // ours is in doubt all looks are such.
            self.second_look = !self.second_look || !agrees;
            pause = if self.second_look { heartbeat } else { long };
        }
        self.look_at = now.boot + pause;
        self.count(entries, now);
    }

    /// Goes by what the peers say about our clock; whether that is good.
    fn trust(&mut self, now: Now) -> bool {
        let agreed = self.peers.agree(now);
        match (&agreed, &self.status.state) {
            (Err(skew), LeaseState::Held | LeaseState::Distrusted(_)) => {
                self.status.state = LeaseState::Distrusted(*skew);
            }
            // The horizon is raised by an extension, at once.
            (Ok(()), LeaseState::Distrusted(ClockSkew { judge: Judge::Peers, .. })) => {
                self.not_before = now.boot;
            }
            _ => {}
        }
        agreed.is_ok()
    }

    fn count(&mut self, entries: Vec<Entry>, now: Now) {
        let Some(meta) = &self.meta else { return };
        let judge = Claim::to_judge(meta, now.unix);
        let wanted = Wanted {
            first: meta.value.first_worker,
            last: meta.value.last_worker,
            favourite: None,
            nonce: judge.nonce,
            now: now.unix,
        };
        let look = Look { entries, ..Look::default() };
        let vacancies = Vacancies { look, is_complete: true, held: 0 };
        let (_, census) = candidates(vacancies, &wanted, &judge);
        self.counted(census);
    }

    /// How the pool is doing, by whatever was asked.
    pub(super) fn counted(&mut self, census: Census) {
        let Some(meta) = &self.meta else { return };
        let workers = meta.value.last_worker.saturating_sub(meta.value.first_worker);
        self.status.pool = Some(Pool { size: workers.saturating_add(1), census });
    }
}
