//! Every decision of a lease keeper, without input, output, clock or chance of its own.

mod look;
mod meta;
mod peers;
mod seek;
#[cfg(test)]
mod tests;

use std::time::Duration;

use self::peers::Peers;
use super::Grant;
use super::setup::Setup;
use super::status::{ClockSkew, LeaseState, LeaseStatus, Refusal, Waiting};
use crate::anchor::Anchor;
use crate::error::Error;
use crate::lease::{Ask, Choice, Claim, Extended, Loss, Tenure};
use crate::nonce::Nonce;
use crate::record::{Meta, UnixMs, Version, Versioned};
use crate::rules::{CLOCK_BOUND_MS, META_EVERY};
use crate::time::millis;

/// The first pause after a failure; each further one is twice as long, up to a heartbeat.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The present, as a plan is told.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Time since the machine started.
    pub boot: Duration,
    /// Real time by the lane's clock.
    pub unix: UnixMs,
    /// The highest time that the lane may have used.
    pub last: UnixMs,
    /// Random bits that were never used before.
    pub nonce: Nonce,
}

/// What to do next.
#[derive(Clone, Debug)]
pub enum Next {
    /// Nothing before this boot time.
    Wait(Duration),
    /// Read meta; answer with [`Plan::meta_read`].
    ReadMeta,
    /// Write meta; answer with [`Plan::meta_written`].
    WriteMeta(Option<Version>, Meta),
    /// Acquire; answer with [`Plan::acquired`].
    Acquire(Claim),
    /// Extend; answer with [`Plan::extended`].
    Extend(Tenure, Ask),
    /// Give back what was never used; answer with [`Plan::returned`].
    Return(Tenure),
    /// Give records that were lost a floor, so that their slots can be used again some day; answer
    /// with [`Plan::mended`].
    Mend(Claim),
    /// List the workers; answer with [`Plan::looked`].
    Look,
    /// Nothing any more.
    Stop,
}

/// What an answer means for the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Use times under this grant from now on.
    Open(Grant),
    /// Times up to this one may be used.
    Raise(UnixMs),
    /// No time may be used any more.
    Close,
}

/// The state of a lease and what follows from it.
#[derive(Clone, Debug)]
pub struct Plan {
    setup: Setup,
    phase: Phase,
    meta: Option<Versioned<Meta>>,
    /// Whether meta was ever seen: one that is gone afterwards was forgotten.
    met: bool,
    /// The widest window that meta ever had: what others may have been promised.
    widest_window_ms: u64,
    /// Meta to be written before anything else.
    draft: Option<(Option<Version>, Meta)>,
    /// What meta's quarantine must be raised to.
    forgotten: Option<UnixMs>,
    /// The incarnation of the namespace that keeps others off what was granted: by the record, or by
    /// its quarantine.
    granted_in: Option<Nonce>,
    /// Whether the namespace was found to keep nobody off what was granted, and that is not made good.
    owes: bool,
    /// When the request was made that is answered next, in boot time.
    asked: Duration,
    /// When the last one was made that ended while nothing was owed.
    heard: Duration,
    /// When meta was last asked for and seen, and before when it is not read again, in boot time.
    meta_seen: Duration,
    meta_not_before: Duration,
    /// Whether all holders are on this machine: then all have one clock.
    is_local: bool,
    anchor: Anchor,
    not_before: Duration,
    /// When a pool that is full is to be mended again.
    mend_at: Duration,
    /// How often in a row the pool had nothing to give.
    refusals: u32,
    /// Whether the store judges our clock by its own.
    store_has_clock: bool,
    /// What judges it otherwise.
    peers: Peers,
    /// When the pool is to be looked at, and when that was last asked for.
    look_at: Duration,
    look_asked: Duration,
    /// Whether the next look follows soon after the last one.
    second_look: bool,
    failures: u32,
    status: LeaseStatus,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Looking for a slot. A claim whose outcome is unknown is repeated until it is known.
    Seeking { unsure: Option<(Choice, Nonce)> },
    /// Holding a slot since some boot time.
    Holding { tenure: Box<Tenure>, since: Duration },
    /// About to give back a slot that was never used.
    Returning(Box<Tenure>),
    /// About to mend a pool that had nothing to give.
    Mending,
    /// Over.
    Ended,
}

impl Plan {
    /// A plan that has not begun. `is_local`: the store is a directory of this machine.
    #[must_use]
    pub fn new(setup: Setup, is_local: bool, now: Now) -> Self {
        Self {
            setup,
            phase: Phase::Seeking { unsure: None },
            meta: None,
            met: false,
            widest_window_ms: 0,
            draft: None,
            forgotten: None,
            granted_in: None,
            owes: false,
            asked: now.boot,
            heard: now.boot,
            meta_seen: now.boot,
            meta_not_before: now.boot,
            is_local,
            anchor: Anchor::new(now.unix, now.boot),
            not_before: now.boot,
            mend_at: now.boot,
            refusals: 0,
            store_has_clock: false,
            peers: Peers::default(),
            look_at: now.boot,
            look_asked: now.boot,
            second_look: false,
            failures: 0,
            status: LeaseStatus {
                state: LeaseState::Seeking(Waiting::Answer),
                grant: None,
                trouble: None,
                pool: None,
                losses: 0,
                renewals: 0,
            },
        }
    }

    /// What is held.
    #[must_use]
    pub fn tenure(&self) -> Option<&Tenure> {
        match &self.phase {
            Phase::Holding { tenure, .. } => Some(tenure),
            _ => None,
        }
    }

    /// How the lease is doing.
    #[must_use]
    pub const fn status(&self) -> &LeaseStatus {
        &self.status
    }

    /// When the last request was made that ended, however it did, while the namespace was not known to
    /// keep nobody off what was granted; in boot time.
    #[must_use]
    pub const fn heard(&self) -> Duration {
        self.heard
    }

    /// What to do now.
    pub fn next(&mut self, now: Now) -> Next {
        let next = self.decide(now);
        if !matches!(next, Next::Wait(_) | Next::Stop) {
            self.asked = now.boot;
        }
        next
    }

    fn decide(&mut self, now: Now) -> Next {
        // The lane will follow a step of its clock that has lasted: the horizon goes before it.
        let is_renewed = self.failures == 0 && self.tenure().is_some() && !self.store_has_clock;
        if is_renewed && self.anchor.notice(now.unix.max(now.last), now.boot) {
            self.not_before = self.not_before.min(now.boot);
        }
        // An extension shows meta too.
        let is_renewing = self.tenure().is_some() && now.boot >= self.not_before;
        let due = self.meta_due(now).filter(|_| !is_renewing);
        if due.is_some_and(|due| due <= now.boot) && !matches!(self.phase, Phase::Ended) {
            return match &self.draft {
                Some((expected, meta)) => Next::WriteMeta(*expected, meta.clone()),
                None => Next::ReadMeta,
            };
        }
        match (self.next_for_lease(now), due) {
            (Next::Wait(until), Some(due)) => Next::Wait(until.min(due)),
            (next, _) => next,
        }
    }

    /// When meta is to be read or written next by somebody who may still use times: others who find
    /// the namespace forgotten count on that.
    fn meta_due(&self, now: Now) -> Option<Duration> {
        let may_use_times = self.status.grant.is_some_and(|grant| grant.horizon > now.unix);
        may_use_times.then(|| match self.draft {
            // Whatever else is waited for: others do not wait for that.
            Some(_) => now.boot,
            None => (self.meta_seen + META_EVERY).max(self.meta_not_before),
        })
    }

    fn next_for_lease(&mut self, now: Now) -> Next {
        if matches!(self.phase, Phase::Ended) {
            return Next::Stop;
        }
        if now.boot < self.not_before {
            return self.look_or_wait(now);
        }
        match &self.phase {
            Phase::Holding { tenure, since } => {
                let (tenure, since) = (tenure.as_ref().clone(), *since);
                Next::Extend(tenure, self.ask(since, now))
            }
            Phase::Returning(tenure) => Next::Return(tenure.as_ref().clone()),
            Phase::Seeking { .. } | Phase::Mending => self.seek(now),
            Phase::Ended => Next::Stop,
        }
    }

    /// Until there is something to do a holder looks around, if the store answers.
    fn look_or_wait(&mut self, now: Now) -> Next {
        let may_look = matches!(self.phase, Phase::Holding { .. }) && self.failures == 0;
        if may_look && now.boot >= self.look_at {
            return self.look(now);
        }
        Next::Wait(if may_look { self.not_before.min(self.look_at) } else { self.not_before })
    }

    fn ask(&mut self, since: Duration, now: Now) -> Ask {
        let window = self.setup.timing.window(now.boot.saturating_sub(since));
        let horizon = self.believed(now).saturating_add(millis(window));
        let budget = millis(self.setup.timing.outage_budget);
        let window_ms = self.meta.as_ref().map_or(budget, |meta| meta.value.window_ms);
        Ask { horizon, ttl: self.setup.timing.ttl, now: now.unix, window_ms }
    }

    /// The time to count a horizon from. Times that run ahead of the clock count, a clock that
    /// jumped ahead does not.
    fn believed(&mut self, now: Now) -> UnixMs {
        // A store with a clock confirms what is right with its next answer.
        let ages = !self.store_has_clock;
        self.anchor.believe(now.unix.max(now.last), now.boot, ages)
    }

    /// Where the store has a clock, a step of ours that it confirms is believed. Where it has none
    /// the clocks of others count.
    ///
    /// Gives whether a step was confirmed that leads past the horizon, or so close to it that the next
    /// heartbeat comes too late: it is asked for anew at once.
    ///
    /// # Errors
    /// How far ours is ahead, if that is out of bounds.
    fn compare_clocks(&mut self, tenure: &Tenure, now: Now) -> Result<bool, ClockSkew> {
        self.store_has_clock = tenure.store_now.is_some();
        let Some(store_now) = tenure.store_now else {
            return self.peers.agree(now).map(|()| false);
        };
        if now.unix.abs_diff(store_now) > CLOCK_BOUND_MS {
            return Err(ClockSkew::to_store(now.unix, store_now));
        }
        let was_step = self.anchor.confirm(now.unix, now.boot);
        Ok(was_step && !self.lasts(tenure.horizon, now))
    }

    /// Whether the lane could go on until the next heartbeat if it went by its clock as it is now.
    #[must_use]
    pub fn reaches(&self, now: Now) -> bool {
        self.status.grant.is_none_or(|grant| self.lasts(grant.horizon, now))
    }

    fn lasts(&self, horizon: UnixMs, now: Now) -> bool {
        now.unix.saturating_add(millis(self.setup.timing.heartbeat)) < horizon
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
            Err(error) => {
                self.failed(now, error);
                Effect::None
            }
            Ok(Extended::Held(tenure)) => {
                self.answered();
                self.status.renewals += 1;
                self.status.state = LeaseState::Held;
                self.not_before = now.boot + self.setup.timing.heartbeat;
                let trusted = self.compare_clocks(&tenure, now);
                let horizon = tenure.usable;
                self.phase = Phase::Holding { tenure: Box::new(tenure), since };
                match trusted {
                    Ok(true) => self.not_before = now.boot,
                    Ok(false) => {}
                    // Times may be used up to what was granted before the clock went wrong.
                    Err(skew) => {
                        self.status.state = LeaseState::Distrusted(skew);
                        return Effect::None;
                    }
                }
                if let Some(grant) = &mut self.status.grant {
                    grant.horizon = grant.horizon.max(horizon);
                }
                Effect::Raise(horizon)
            }
            Ok(Extended::Lost(loss)) => self.lose(loss, now),
        }
    }

    fn lose(&mut self, loss: Loss, now: Now) -> Effect {
        self.answered();
        self.status.losses += 1;
        if matches!(loss, Loss::Vanished | Loss::Regressed | Loss::Overlapped { .. }) {
            self.forgotten = self.status.grant.map(|grant| grant.horizon);
            self.owes = true;
            self.meta = None;
        }
        // An operator gave the slot to others, above what this lane had used by then.
        // Or the store did, having forgotten this one.
        let given_away = matches!(loss, Loss::Released | Loss::Overlapped { .. });
        let effect = if given_away { Effect::Close } else { Effect::None };
        if effect == Effect::Close {
            self.status.grant = None;
        }
        // Nobody else has it if the store merely forgot or lapsed.
        if given_away || matches!(loss, Loss::Superseded { .. }) {
            self.setup.favourite = None;
        }
        self.status.state = LeaseState::Replacing(loss, Waiting::Answer);
        self.phase = Phase::Seeking { unsure: None };
        self.not_before = now.boot;
        effect
    }

    /// The process was stopped for a while: whatever is held is looked at now.
    pub fn woken(&mut self, now: Now) {
        self.meta_seen = now.boot.saturating_sub(META_EVERY);
        if self.tenure().is_some() {
            self.not_before = now.boot;
        }
    }

    /// Ends the lease. What is to be released, if anything is held; the lane is closed before.
    pub fn end(&mut self) -> Option<Tenure> {
        let phase = std::mem::replace(&mut self.phase, Phase::Ended);
        if !matches!(self.status.state, LeaseState::Refused(_)) {
            self.status.state = LeaseState::Released;
        }
        match phase {
            Phase::Holding { tenure, .. } | Phase::Returning(tenure) => Some(*tenure),
            _ => None,
        }
    }

    /// Ends the lease for a reason that stays. Nothing may be used any more, not even what was
    /// granted: this comes after the first grant only where the namespace has come to mean something
    /// else, and then no rule keeps what is issued here apart from what is issued there.
    pub fn refuse(&mut self, refusal: Refusal) {
        self.phase = Phase::Ended;
        self.status.grant = None;
        self.status.state = LeaseState::Refused(refusal);
    }

    /// A request has ended, however it did.
    const fn ended(&mut self) {
        if !self.owes {
            self.heard = self.asked;
        }
    }

    fn answered(&mut self) {
        self.failures = 0;
        self.status.trouble = None;
    }

    fn failed(&mut self, now: Now, error: Error) {
        let kind = error.kind();
        // Before anything was held, whoever started this is told what to mend.
        if !kind.is_retryable() && self.status.grant.is_none() {
            self.refuse(error.into());
            return;
        }
        self.status.trouble = Some(error);
        match self.phase {
            Phase::Holding { .. } => self.status.state = LeaseState::Unrenewed,
            _ => self.wait_for(Waiting::Store(kind)),
        }
        self.pause(now);
    }

    fn pause(&mut self, now: Now) {
        self.failures += 1;
        let doubled = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(10) - 1);
        let pause = doubled.min(self.setup.timing.heartbeat);
        // Up to a quarter less, so that many do not come back at once; never more, because others
        // count on hearing from a holder within a heartbeat.
        let chance = u32::try_from(now.nonce.bits() % 256).expect("less than 256");
        self.not_before = now.boot + pause * (1024 - chance) / 1024;
    }

    fn wait_for(&mut self, waiting: Waiting) {
        self.status.state = match &self.status.state {
            LeaseState::Replacing(loss, _) => LeaseState::Replacing(loss.clone(), waiting),
            _ => LeaseState::Seeking(waiting),
        };
    }
}
