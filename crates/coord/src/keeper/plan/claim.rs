//! The plan of somebody without a slot: claims and their answers.

use std::ops::ControlFlow;
use std::time::Duration;

use super::{Effect, Next, Now, Phase, Plan, Policy};
use crate::error::Error;
use crate::keeper::Grant;
use crate::keeper::status::{ClockSkew, LeaseState, Waiting};
use crate::lease::{Acquired, Choice, Claim, Tenure};
use crate::nonce::Nonce;
use crate::record::UnixMs;
use crate::rules::{RUN_AHEAD_MS, is_plainly_wrong};

impl Plan {
    /// What somebody without a slot does next.
    pub(super) fn seek(&mut self, now: Now) -> Next {
        if self.draft.is_some() {
            return self.next_for_meta();
        }
        let Some(meta) = &self.meta else { return Next::ReadMeta };
        // A claim that may have been carried out comes first.
        let pinned = match &self.phase {
            Phase::Seeking { unsure } => unsure.clone(),
            _ => None,
        };
        if let Some((choice, nonce)) = pinned {
            return Next::Acquire(self.claim(choice, nonce, now));
        }
        let quarantine = meta.value.quarantine;
        if self.uses_times() && quarantine > now.unix.saturating_add(RUN_AHEAD_MS) {
            return self.wait_for_quarantine(quarantine, now);
        }
        let choice = match &self.policy {
            Policy::Worker(_) => self.any_worker(now),
            Policy::Leader(_) => self.named_slot(now),
        };
        let claim = match choice {
            ControlFlow::Continue(choice) => self.claim(choice, now.nonce, now),
            ControlFlow::Break(next) => return next,
        };
        match self.phase {
            Phase::Repairing => Next::Repair(claim),
            _ => {
                // What makes this a holder, if anything does, may be the first of several sendings.
                self.sent = now.boot;
                Next::Acquire(claim)
            }
        }
    }

    fn wait_for_quarantine(&mut self, until: UnixMs, now: Now) -> Next {
        let ahead_hours = (until - now.unix) / 3_600_000;
        self.wait_for(match is_plainly_wrong(until, now.unix) {
            true => Waiting::WrongTimes { until, ahead_hours },
            false => Waiting::Quarantine { until },
        });
        let left = Duration::from_millis(until - now.unix - RUN_AHEAD_MS);
        self.not_before = now.boot + left.min(self.heartbeat);
        // It may be raised meanwhile.
        self.meta = None;
        Next::Wait(self.not_before)
    }

    fn claim(&mut self, choice: Choice, nonce: Nonce, now: Now) -> Claim {
        let ask = self.horizon(Duration::ZERO, now);
        let meta = self.meta.as_ref().expect("a claim follows the reading of meta");
        let (window_ms, quarantine) = match &self.policy {
            Policy::Worker(_) => (meta.value.window_ms, meta.value.quarantine),
            Policy::Leader(leader) => match leader.window {
                Some(window) => (super::millis(window), meta.value.quarantine),
                // No times are used, and nothing about times can stand in the way.
                None => (0, 0),
            },
        };
        Claim {
            choice,
            nonce,
            holder: self.holder.clone(),
            info: self.info.clone(),
            ttl: self.ttl,
            now: now.unix,
            ask,
            window_ms,
            quarantine,
            meta: meta.version,
        }
    }

    /// A claim was answered.
    pub fn acquired(&mut self, now: Now, claim: &Claim, answer: Result<Acquired, Error>) -> Effect {
        // Meta that moved may be that of another namespace.
        if !matches!(answer, Ok(Acquired::MetaMoved)) {
            self.ended();
        }
        let acquired = match answer {
            Ok(acquired) => acquired,
            Err(error) => {
                // Whatever the claim did, repeating it with its own nonce is safe.
                let unsure = Some((claim.choice.clone(), claim.nonce));
                self.phase = Phase::Seeking { unsure };
                self.failed(now, error);
                return Effect::None;
            }
        };
        // Only a claim of this meta is judged at all.
        if matches!(acquired, Acquired::Taken | Acquired::Full(_)) {
            self.meta_seen = self.asked;
        }
        if !matches!(acquired, Acquired::Unsure(..) | Acquired::Unsettled(..)) {
            self.answered();
        }
        match acquired {
            Acquired::Held(tenure) => return self.hold(tenure, claim.ask, now),
            Acquired::Taken => {
                self.phase = Phase::Seeking { unsure: None };
                self.look_again(now);
            }
            Acquired::Full(census) => self.full(census, now),
            Acquired::MetaMoved => self.meta = None,
            Acquired::ClockOff { store_now } => {
                self.store_has_clock = true;
                self.phase = Phase::Seeking { unsure: None };
                self.wait_for(Waiting::Clock(ClockSkew::to_store(now.unix, store_now)));
                self.not_before = now.boot + self.heartbeat;
                self.look_again(now);
            }
            Acquired::Unsure(slot, version) => {
                let unsure = Some((Choice::This(slot, version), claim.nonce));
                self.phase = Phase::Seeking { unsure };
                self.pause(now);
            }
            Acquired::Unsettled(slot, version, why) => {
                let unsure = Some((Choice::This(slot, version), claim.nonce));
                self.phase = Phase::Seeking { unsure };
                self.wait_for(Waiting::Settling(why));
                self.pause(now);
            }
        }
        if self.is_ending
            && matches!(self.phase, Phase::Seeking { unsure: None } | Phase::Repairing)
        {
            self.phase = Phase::Ended;
        }
        Effect::None
    }

    fn hold(&mut self, tenure: Tenure, ask: UnixMs, now: Now) -> Effect {
        if self.is_ending || self.is_too_late(now) {
            self.give_back(tenure);
            return Effect::None;
        }
        if self.is_of_another_namespace(&tenure) {
            self.meta = None;
            self.give_back(tenure);
            return Effect::None;
        }
        let is_short = match self.compare_clocks(&tenure, now) {
            Ok(is_past) => is_past || tenure.horizon < ask,
            Err(skew) => {
                self.wait_for(Waiting::Clock(skew));
                self.give_back(tenure);
                return Effect::None;
            }
        };
        let Some(effect) = self.begin_to_use(&tenure, now) else {
            self.give_back(tenure);
            return Effect::None;
        };
        self.granted = Some(tenure.usable);
        self.granted_in = Some(tenure.incarnation);
        self.owes = false;
        (self.heard, self.meta_seen) = (self.asked, self.asked);
        self.status.state = LeaseState::Held;
        self.phase = Phase::Holding { tenure: Box::new(tenure), since: now.boot };
        self.not_before = now.boot + self.heartbeat;
        self.prolong(now);
        if is_short {
            // A claim that was repeated for a while may give a horizon that is near or past by now.
            self.not_before = now.boot;
        }
        effect
    }

    /// Whether the namespace was created anew after the claim's quarantine was read from it. The claim
    /// names the version of meta, which some stores count from the beginning after a wipe.
    fn is_of_another_namespace(&self, tenure: &Tenure) -> bool {
        self.meta.as_ref().is_none_or(|meta| meta.value.incarnation != tenure.incarnation)
    }

    /// What a slot is used for; `None` for one that nobody asked for.
    fn begin_to_use(&mut self, tenure: &Tenure, now: Now) -> Option<Effect> {
        match &mut self.policy {
            Policy::Worker(own) => {
                let worker = tenure.slot.number()?;
                own.found(worker, now);
                let (token, floor, horizon) = (tenure.token, tenure.floor, tenure.usable);
                let grant = Grant { worker, token, floor, horizon };
                self.status.grant = Some(grant);
                Some(Effect::Open(grant))
            }
            Policy::Leader(_) => {
                self.token = self.token.max(tenure.token);
                Some(Effect::Lead)
            }
        }
    }
}
