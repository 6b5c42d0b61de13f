//! Every decision of a lease keeper, without input, output, clock or chance of its own.
//!
//! One plan for all that is leased. What a lease is for is its [`Policy`]: a worker is any slot of a
//! range, a leader wants one slot by its name, and the leader of a strict scope uses times besides.

mod claim;
mod hold;
mod leader;
mod leave;
mod meta;
mod peers;
#[cfg(test)]
mod tests;
mod wanted_slot;
mod worker;

use std::collections::BTreeMap;
use std::time::Duration;

use self::leader::Leader;
use self::worker::Worker;
use super::Grant;
use super::setup::{Candidacy, Setup};
use super::status::{LeaseState, LeaseStatus, Refusal, Waiting};
use crate::clock_step::StepFilter;
use crate::error::Error;
use crate::lease::{Ask, Choice, Claim, Tenure};
use crate::new_namespace::FirstUse;
use crate::nonce::Nonce;
use crate::record::{Meta, Token, UnixMs, Version, Versioned};
use crate::rules::META_EVERY;
use crate::time::{doubled, millis};

/// The first pause after a failure; each further one is twice as long, up to a heartbeat.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The present, as a plan is told.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Time since the machine started.
    pub boot: Duration,
    /// Real time by the clock that times come from.
    pub unix: UnixMs,
    /// The highest time that may have been used.
    pub last: UnixMs,
    /// Random bits that were never used before.
    pub nonce: Nonce,
}

/// What to do next.
#[derive(Clone, Debug)]
pub enum Next {
    /// Nothing before this boot time.
    Wait(Duration),
    /// Look at the slot that is wanted, and wait until it was, or for this boot time; answer with
    /// [`Plan::saw`].
    Watch(Duration),
    /// Read meta; answer with [`Plan::meta_read`].
    ReadMeta,
    /// Write meta; answer with [`Plan::meta_written`].
    WriteMeta(Option<Version>, Meta),
    /// Acquire; answer with [`Plan::acquired`].
    Acquire(Claim),
    /// Extend; answer with [`Plan::extended`].
    Extend(Tenure, Ask),
    /// Give a slot back, of which times up to this one were used; answer with [`Plan::released`].
    Release(Tenure, UnixMs),
    /// Give records that were lost a floor, so that their slots can be used again some day; answer
    /// with [`Plan::repaired`].
    Repair(Claim),
    /// List the workers; answer with [`Plan::looked`].
    Look,
    /// Tell whoever leads that its time has run out; there is nothing to answer.
    Lapse(Tenure),
    /// Nothing any more.
    Stop,
}

/// What an answer means for whoever the lease is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Use times under this grant from now on.
    Open(Grant),
    /// Lead from now on, by the [tenure](Plan::tenure) that is held.
    Lead,
    /// Times up to this one may be used.
    Raise(UnixMs),
    /// No time may be used any more.
    Close,
}

/// The state of a lease and what follows from it.
#[derive(Clone, Debug)]
pub struct Plan {
    policy: Policy,
    ttl: Duration,
    heartbeat: Duration,
    first_use: FirstUse,
    /// Who holds, and more about that.
    holder: String,
    info: BTreeMap<String, String>,
    phase: Phase,
    /// Whether it ends as soon as it is known what is held.
    is_ending: bool,
    meta: Option<Versioned<Meta>>,
    /// Whether meta was ever seen: one that is gone afterwards was forgotten.
    met: bool,
    /// The widest window that meta ever had: what others may have been promised.
    widest_window_ms: u64,
    /// Meta to be written before anything else.
    draft: Option<(Option<Version>, Meta)>,
    /// The horizon up to which times may be used here, by whatever tenure.
    granted: Option<UnixMs>,
    /// What meta's quarantine must be raised to.
    forgotten: Option<UnixMs>,
    /// The incarnation of the namespace that keeps others off what was granted: by the record, or by
    /// its quarantine.
    granted_in: Option<Nonce>,
    /// The highest token that a leader was seen with, or had.
    token: Token,
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
    step_filter: StepFilter,
    /// Whether the store judges our clock by its own.
    store_has_clock: bool,
    /// When the request was made that may make this a holder or renew it: of a claim that is repeated
    /// the first.
    sent: Duration,
    not_before: Duration,
    failures: u32,
    status: LeaseStatus,
}

/// What a lease is for.
#[derive(Clone, Debug)]
enum Policy {
    Worker(Box<Worker>),
    Leader(Box<Leader>),
}

#[derive(Clone, Debug)]
enum Phase {
    /// Looking for a slot. A claim whose outcome is unknown is repeated until it is known.
    Seeking { unsure: Option<(Choice, Nonce)> },
    /// Holding a slot since some boot time.
    Holding { tenure: Box<Tenure>, since: Duration },
    /// About to give a slot back, and then to seek another one or to end.
    Leaving { tenure: Box<Tenure>, last: UnixMs, goes_on: bool },
    /// About to repair a pool that had nothing to give.
    Repairing,
    /// About to keep others off times that were used, until this boot time at most.
    Owing { until: Duration },
    /// Over.
    Ended,
}

impl Plan {
    /// A plan for a worker. `is_local`: the store is a directory of this machine.
    #[must_use]
    pub fn new(setup: Setup, is_local: bool, now: Now) -> Self {
        let Setup { timing, first_use, holder, info, .. } = setup.clone();
        let policy = Policy::Worker(Box::new(Worker::new(setup, now)));
        let plan = Self::begin(policy, first_use, now);
        let (ttl, heartbeat) = (timing.ttl, timing.heartbeat);
        Self { ttl, heartbeat, is_local, holder, info, ..plan }
    }

    /// A plan for a leader, in a namespace with this meta record, if that is known.
    #[must_use]
    pub fn for_leader(candidacy: Candidacy, meta: Option<Versioned<Meta>>, now: Now) -> Self {
        let Candidacy { ttl, heartbeat, first_use, holder, .. } = candidacy.clone();
        let policy = Policy::Leader(Box::new(Leader::new(candidacy)));
        let granted_in = meta.as_ref().map(|meta| meta.value.incarnation);
        let plan = Self::begin(policy, first_use, now);
        Self { ttl, heartbeat, holder, granted_in, meta, ..plan }
    }

    fn begin(policy: Policy, first_use: FirstUse, now: Now) -> Self {
        Self {
            policy,
            ttl: Duration::ZERO,
            heartbeat: Duration::ZERO,
            first_use,
            holder: String::new(),
            info: BTreeMap::new(),
            phase: Phase::Seeking { unsure: None },
            is_ending: false,
            meta: None,
            met: false,
            widest_window_ms: 0,
            draft: None,
            granted: None,
            forgotten: None,
            granted_in: None,
            token: Token::default(),
            owes: false,
            asked: now.boot,
            heard: now.boot,
            meta_seen: now.boot,
            meta_not_before: now.boot,
            is_local: false,
            step_filter: StepFilter::new(now.unix, now.boot),
            store_has_clock: false,
            sent: now.boot,
            not_before: now.boot,
            failures: 0,
            status: LeaseStatus::at_first(),
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

    /// When the request was made, in boot time, that may have made this a holder or renewed it: of a
    /// claim that was repeated the first.
    #[must_use]
    pub const fn sent(&self) -> Duration {
        self.sent
    }

    /// Meta as it was last seen.
    #[must_use]
    pub const fn meta(&self) -> Option<&Versioned<Meta>> {
        self.meta.as_ref()
    }

    /// Whether it is workers that are leased.
    #[must_use]
    pub const fn leases_workers(&self) -> bool {
        matches!(self.policy, Policy::Worker(_))
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
        let is_request =
            !matches!(next, Next::Wait(_) | Next::Watch(_) | Next::Lapse(_) | Next::Stop);
        if is_request {
            self.asked = now.boot;
        }
        next
    }

    fn decide(&mut self, now: Now) -> Next {
        if self.has_lapsed(now) {
            return self.lapse(now);
        }
        self.follow_clock(now);
        // An extension shows meta too.
        let is_renewing = self.tenure().is_some() && now.boot >= self.not_before;
        let due = self.meta_due(now).filter(|_| !is_renewing);
        if due.is_some_and(|due| due <= now.boot) && !matches!(self.phase, Phase::Ended) {
            return self.next_for_meta();
        }
        match (self.next_for_lease(now), due) {
            (Next::Wait(until), Some(due)) => Next::Wait(until.min(due)),
            (next, _) => next,
        }
    }

    fn next_for_meta(&self) -> Next {
        match &self.draft {
            Some((expected, meta)) => Next::WriteMeta(*expected, meta.clone()),
            None => Next::ReadMeta,
        }
    }

    /// When meta is to be read or written next by somebody who may still use times: others who find
    /// the namespace forgotten count on that.
    fn meta_due(&self, now: Now) -> Option<Duration> {
        let may_use_times = self.granted.is_some_and(|horizon| horizon > now.unix);
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
            Phase::Holding { .. } => self.extend(now),
            Phase::Leaving { tenure, last, .. } => Next::Release(tenure.as_ref().clone(), *last),
            Phase::Owing { until } => self.owe(*until, now),
            Phase::Seeking { .. } | Phase::Repairing => self.seek(now),
            Phase::Ended => Next::Stop,
        }
    }

    /// Whether times are used, and clocks matter.
    const fn uses_times(&self) -> bool {
        match &self.policy {
            Policy::Worker(_) => true,
            Policy::Leader(leader) => leader.window.is_some(),
        }
    }

    /// Ends the lease for a reason that stays. Nothing may be used any more, not even what was
    /// granted: this comes after the first grant only where the namespace has come to mean something
    /// else, and then no rule keeps what is issued here apart from what is issued there.
    pub fn refuse(&mut self, refusal: Refusal) {
        self.phase = Phase::Ended;
        (self.granted, self.status.grant) = (None, None);
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
        let is_seeking = matches!(self.phase, Phase::Seeking { .. } | Phase::Repairing);
        // Before anything was held, whoever started this is told what to repair.
        if !kind.is_retryable() && self.granted.is_none() && is_seeking {
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
        let pause = doubled(FIRST_PAUSE, self.failures - 1, self.longest_pause());
        self.not_before = now.boot + jittered(pause, now);
    }

    /// Before a request is tried again that failed: a heartbeat, since others count on hearing from a
    /// holder within one.
    fn longest_pause(&self) -> Duration {
        match (&self.policy, &self.phase) {
            (Policy::Worker(_), _) | (_, Phase::Holding { .. }) => self.heartbeat,
            (Policy::Leader(leader), _) => leader.retry,
        }
    }

    fn wait_for(&mut self, waiting: Waiting) {
        self.status.state = match &self.status.state {
            // It is over, whatever is still to be done.
            LeaseState::Released => LeaseState::Released,
            LeaseState::Replacing(loss, _) => LeaseState::Replacing(loss.clone(), waiting),
            _ => LeaseState::Seeking(waiting),
        };
    }
}

/// Up to a quarter less, so that many do not come back at once; never more.
fn jittered(pause: Duration, now: Now) -> Duration {
    let chance = u32::try_from(now.nonce.bits() % 256).expect("less than 256");
    pause * (1024 - chance) / 1024
}
