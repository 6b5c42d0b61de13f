//! The end of a lease: what is given back, and what is owed before.

use std::time::Duration;

use super::{Next, Now, Phase, Plan};
use crate::error::Error;
use crate::keeper::status::LeaseState;
use crate::lease::{Released, Tenure};
use crate::record::UnixMs;

impl Plan {
    /// Ends the lease: what is held is given back, and a claim that may have been carried out is
    /// repeated until that is known. `last`: the highest time that was used, if that is known; none is
    /// used any more.
    pub fn end(&mut self, now: Now, last: Option<UnixMs>) {
        self.is_ending = true;
        // What ran out before it was given up is not free for others at once.
        if self.has_lapsed(now) && self.is_waited_for() {
            self.lapse(now);
            return;
        }
        let used = self.granted.filter(|_| self.uses_times());
        (self.granted, self.status.grant) = (None, None);
        if !matches!(self.status.state, LeaseState::Refused(_)) {
            self.status.state = LeaseState::Released;
        }
        self.phase = match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Holding { tenure, .. } => {
                let last = last.or(used).unwrap_or(0);
                self.not_before = now.boot;
                Phase::Leaving { tenure, last, goes_on: false }
            }
            Phase::Leaving { tenure, last, .. } => Phase::Leaving { tenure, last, goes_on: false },
            phase @ (Phase::Seeking { unsure: Some(_) } | Phase::Owing { .. }) => phase,
            Phase::Seeking { unsure: None } | Phase::Repairing | Phase::Ended => Phase::Ended,
        };
    }

    /// Gives back what was never used.
    pub(super) fn give_back(&mut self, tenure: Tenure) {
        let last = tenure.floor;
        self.phase = Phase::Leaving { tenure: Box::new(tenure), last, goes_on: !self.is_ending };
    }

    /// A slot was given back, or not.
    pub fn released(&mut self, now: Now, answer: &Result<Released, Error>) {
        self.ended();
        let Phase::Leaving { goes_on, .. } = self.phase else { return };
        let is_over = match answer {
            Ok(_) => true,
            // Other slots of this process may keep its presence alive, and then nobody else could
            // ever lead.
            Err(_) if !self.leases_workers() => false,
            Err(error) => !error.kind().is_retryable(),
        };
        if !is_over {
            return self.pause(now);
        }
        self.failures = 0;
        self.phase = if goes_on { Phase::Seeking { unsure: None } } else { Phase::Ended };
        self.not_before = now.boot + self.longest_pause();
        self.look_again(now);
    }

    /// Keeps others off the times and tokens that were used, in a namespace that has forgotten them.
    pub(super) fn owe(&mut self, until: Duration, now: Now) -> Next {
        // Whoever is new there waits no longer than that.
        if self.meta.is_some() || now.boot >= until {
            self.phase = Phase::Ended;
            return Next::Stop;
        }
        self.next_for_meta()
    }
}
