//! The plan of a holder: extensions and their answers, clocks, and the ways to lose a slot.

use std::time::Duration;

use super::{Effect, Next, Now, Phase, Plan, Policy, millis};
use crate::error::Error;
use crate::keeper::status::{ClockSkew, LeaseState, Waiting};
use crate::lease::{Ask, Extended, Loss, Tenure};
use crate::record::UnixMs;
use crate::rules::{CLOCK_BOUND_MS, META_EVERY};

impl Plan {
    pub(super) fn extend(&mut self, now: Now) -> Next {
        let Phase::Holding { tenure, since } = &self.phase else { return Next::Stop };
        let (tenure, age) = (tenure.as_ref().clone(), now.boot.saturating_sub(*since));
        self.sent = now.boot;
        Next::Extend(tenure, self.ask(age, now))
    }

    fn ask(&mut self, age: Duration, now: Now) -> Ask {
        let horizon = self.horizon(age, now);
        let window_ms = match (&self.policy, &self.meta) {
            (Policy::Worker(worker), None) => millis(worker.setup.timing.outage_budget),
            (Policy::Worker(_), Some(meta)) => meta.value.window_ms,
            (Policy::Leader(leader), _) => millis(leader.window.unwrap_or(self.ttl)),
        };
        Ask { horizon, ttl: self.ttl, now: now.unix, window_ms }
    }

    /// The horizon that a tenure of an age asks for.
    pub(super) fn horizon(&mut self, age: Duration, now: Now) -> UnixMs {
        match &self.policy {
            Policy::Worker(worker) => {
                let window = millis(worker.setup.timing.window(age));
                self.believed(now).saturating_add(window)
            }
            Policy::Leader(leader) => match leader.window {
                None => 0,
                Some(window) => {
                    // The clock was judged before; the store's judges it once more, if it has one.
                    let judged = if self.store_has_clock { self.believed(now) } else { now.unix };
                    judged.saturating_add(millis(window))
                }
            },
        }
    }

    /// The time to count a horizon from. Times that run ahead of the clock count, a clock that
    /// jumped ahead does not.
    fn believed(&mut self, now: Now) -> UnixMs {
        // A store with a clock confirms what is right with its next answer.
        let ages = !self.store_has_clock;
        self.step_filter.believe(now.unix.max(now.last), now.boot, ages)
    }

    /// A lane will follow a step of its clock that has lasted: the horizon goes before it.
    pub(super) fn follow_clock(&mut self, now: Now) {
        let is_renewed = self.failures == 0 && self.tenure().is_some() && !self.store_has_clock;
        if is_renewed
            && self.leases_workers()
            && self.step_filter.notice(now.unix.max(now.last), now.boot)
        {
            self.not_before = self.not_before.min(now.boot);
        }
    }

    /// Where the store has a clock, a step of ours that it confirms is believed. Where it has none
    /// the clocks of others count.
    ///
    /// Gives whether a step was confirmed that leads past the horizon, or so close to it that the next
    /// heartbeat comes too late: it is asked for anew at once.
    ///
    /// # Errors
    /// How far ours is ahead, if that is out of bounds.
    pub(super) fn compare_clocks(&mut self, tenure: &Tenure, now: Now) -> Result<bool, ClockSkew> {
        if !self.uses_times() {
            return Ok(false);
        }
        self.store_has_clock = tenure.store_now.is_some();
        let Some(store_now) = tenure.store_now else {
            return self.agree_with_peers(now).map(|()| false);
        };
        if now.unix.abs_diff(store_now) > CLOCK_BOUND_MS {
            return Err(ClockSkew::to_store(now.unix, store_now));
        }
        let was_step = self.step_filter.confirm(now.unix, now.boot);
        Ok(was_step && !self.lasts(tenure.horizon, now))
    }

    /// Whether the lane could go on until the next heartbeat if it went by its clock as it is now.
    #[must_use]
    pub fn reaches(&self, now: Now) -> bool {
        self.granted.is_none_or(|horizon| self.lasts(horizon, now))
    }

    fn lasts(&self, horizon: UnixMs, now: Now) -> bool {
        now.unix.saturating_add(millis(self.heartbeat)) < horizon
    }

    /// An extension was answered.
    pub fn extended(&mut self, now: Now, answer: Result<Extended, Error>) -> Effect {
        let since = match &self.phase {
            Phase::Holding { since, .. } => *since,
            _ => return Effect::None,
        };
        if answer.is_ok() {
            self.meta_seen = self.asked;
        }
        let effect = self.judge_extension(now, since, answer);
        self.ended();
        effect
    }

    fn judge_extension(
        &mut self,
        now: Now,
        since: Duration,
        answer: Result<Extended, Error>,
    ) -> Effect {
        match answer {
            // It is over, whatever the store says: others may have been told.
            _ if self.has_lapsed(now) => Effect::None,
            Err(error) => {
                self.failed(now, error);
                Effect::None
            }
            Ok(Extended::Held(tenure)) => self.renewed(tenure, since, now),
            Ok(Extended::Lost(loss)) => self.lose(loss, now),
        }
    }

    fn renewed(&mut self, tenure: Tenure, since: Duration, now: Now) -> Effect {
        self.answered();
        self.status.renewals += 1;
        self.status.state = LeaseState::Held;
        self.not_before = now.boot + self.heartbeat;
        let trusted = self.compare_clocks(&tenure, now);
        let horizon = tenure.usable;
        self.phase = Phase::Holding { tenure: Box::new(tenure), since };
        let is_past = match trusted {
            Ok(is_past) => is_past,
            // Times may be used up to what was granted before the clock went wrong.
            Err(skew) => {
                self.status.state = LeaseState::Distrusted(skew);
                return Effect::None;
            }
        };
        self.prolong(now);
        if is_past {
            self.not_before = now.boot;
        }
        self.granted = self.granted.max(Some(horizon));
        if let Some(grant) = &mut self.status.grant {
            grant.horizon = grant.horizon.max(horizon);
        }
        Effect::Raise(horizon)
    }

    pub(super) fn lose(&mut self, loss: Loss, now: Now) -> Effect {
        self.answered();
        self.status.losses += 1;
        if matches!(loss, Loss::Vanished | Loss::Regressed | Loss::Overlapped { .. }) {
            self.forgotten = self.granted;
            self.owes = true;
            self.meta = None;
        }
        self.not_before = now.boot;
        match &mut self.policy {
            Policy::Worker(worker) => {
                // An operator gave the slot to others, above what this lane had used by then.
                // Or the store did, having forgotten this one.
                let given_away = matches!(loss, Loss::Released | Loss::Overlapped { .. });
                // Nobody else has it if the store merely forgot or lapsed.
                if given_away || matches!(loss, Loss::Superseded { .. }) {
                    worker.setup.favourite = None;
                }
                self.status.state = LeaseState::Replacing(loss, Waiting::Answer);
                self.phase = Phase::Seeking { unsure: None };
                if !given_away {
                    return Effect::None;
                }
                (self.granted, self.status.grant) = (None, None);
            }
            Policy::Leader(_) => self.lead_no_more(&loss, now),
        }
        Effect::Close
    }

    /// The process was stopped for a while: whatever is held is looked at now.
    pub fn woken(&mut self, now: Now) {
        self.meta_seen = now.boot.saturating_sub(META_EVERY);
        if self.tenure().is_some() {
            self.not_before = now.boot;
        }
    }
}
