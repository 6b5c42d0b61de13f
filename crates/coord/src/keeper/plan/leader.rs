//! The policy of a leader: one slot, by its name, for as long as the store keeps being told.

use std::ops::ControlFlow;
use std::time::Duration;

use super::wanted_slot::{Wait, WantedSlot};
use super::{Next, Now, Phase, Plan, Policy, jittered};
use crate::keeper::setup::Candidacy;
use crate::keeper::status::LeaseState;
use crate::lease::{Choice, Loss};
use crate::rules::SILENCE_MS;
use crate::slot::Slot;
use crate::store::{Entry, Found};

/// What is particular to a leader.
#[derive(Clone, Debug)]
pub(super) struct Leader {
    slot: Slot,
    /// How long work goes on that was left without a word.
    lock_delay: Duration,
    pub(super) retry: Duration,
    /// For strict scopes: how far ahead of now times may be used.
    pub(super) window: Option<Duration>,
    /// For how long an acknowledgement is good from when it was asked for; `None` where no time ends
    /// presence.
    trust: Option<Duration>,
    wanted_slot: WantedSlot,
    /// When it leads no more unless it is renewed, in boot time.
    lapses: Option<Duration>,
    /// When the last renewal was answered, in boot time: presence ends no later than a TTL after.
    answered: Duration,
}

impl Leader {
    pub(super) fn new(candidacy: Candidacy) -> Self {
        let Candidacy { slot, ttl, retry, lock_delay, window, trust, .. } = candidacy;
        let wanted_slot = WantedSlot::new(lock_delay, ttl);
        let (lapses, answered) = (None, Duration::ZERO);
        Self { slot, lock_delay, retry, window, trust, wanted_slot, lapses, answered }
    }
}

impl Plan {
    /// The slot that is wanted was seen: as it was when it was asked for, in an answer that was here
    /// at another boot time. `pace`: how long to leave a free slot to others, if it is to be taken at all.
    pub fn saw(
        &mut self,
        entry: Option<&Entry>,
        (asked, seen): (Duration, Duration),
        pace: Option<Duration>,
    ) {
        if let Policy::Leader(leader) = &mut self.policy {
            leader.wanted_slot.saw(entry, (asked, seen), pace);
            if let Some(Found::Known(record)) = entry.map(|entry| &entry.found) {
                self.token = self.token.max(record.token);
            }
        }
    }

    /// What is seen from now on alone tells whether the slot is free.
    pub(super) fn look_again(&mut self, now: Now) {
        if let Policy::Leader(leader) = &mut self.policy {
            leader.wanted_slot.look_again(now.boot);
        }
    }

    /// The slot to be claimed, or what to wait for.
    pub(super) fn named_slot(&self, now: Now) -> ControlFlow<Next, Choice> {
        let Policy::Leader(leader) = &self.policy else { return ControlFlow::Break(Next::Stop) };
        let retry = now.boot + jittered(leader.retry, now);
        match leader.wanted_slot.wait(now.boot, leader.retry) {
            Wait::No(version) => ControlFlow::Continue(Choice::This(leader.slot.clone(), version)),
            Wait::For(pause) => {
                let until = retry.min(now.boot + pause);
                let is_old = leader.wanted_slot.is_old(now.boot, leader.retry);
                ControlFlow::Break(if is_old { Next::Watch(until) } else { Next::Wait(until) })
            }
            Wait::ForAChange => ControlFlow::Break(Next::Wait(retry)),
            Wait::ForALook => ControlFlow::Break(Next::Watch(retry)),
        }
    }

    /// Leads for a while, from when that was asked for.
    pub(super) fn prolong(&mut self, now: Now) {
        let Policy::Leader(leader) = &mut self.policy else { return };
        leader.lapses = leader.lapses.max(leader.trust.map(|trust| self.sent + trust));
        leader.answered = now.boot;
        // The next renewal counts from there too.
        self.not_before = self.sent + self.heartbeat;
    }

    /// Whether what was asked for lasts no longer: the answer took all the time.
    pub(super) fn is_too_late(&self, now: Now) -> bool {
        match &self.policy {
            Policy::Leader(leader) => {
                leader.trust.is_some_and(|trust| now.boot >= self.sent + trust)
            }
            Policy::Worker(_) => false,
        }
    }

    /// Whether it held a slot for as long as it may without a renewal.
    #[must_use]
    pub fn has_lapsed(&self, now: Now) -> bool {
        match (&self.policy, &self.phase) {
            (Policy::Leader(leader), Phase::Holding { .. }) => {
                leader.lapses.is_some_and(|lapses| now.boot >= lapses)
            }
            _ => false,
        }
    }

    /// Whoever leads has seen that its time has run out.
    pub fn expire(&mut self, now: Now) {
        if let Policy::Leader(leader) = &mut self.policy {
            leader.lapses = Some(now.boot);
        }
    }

    /// Whether others wait after one who was lost without a word.
    pub(super) const fn is_waited_for(&self) -> bool {
        match &self.policy {
            Policy::Leader(leader) => !leader.lock_delay.is_zero(),
            Policy::Worker(_) => false,
        }
    }

    pub(super) fn lapse(&mut self, now: Now) -> Next {
        let Some(tenure) = self.tenure().cloned() else { return Next::Stop };
        self.lose(Loss::Lapsed, now);
        Next::Lapse(tenure)
    }

    /// What is still to be done by one who leads no more.
    pub(super) fn lead_no_more(&mut self, loss: &Loss, now: Now) {
        let used = self.granted.filter(|_| self.uses_times());
        let Policy::Leader(leader) = &self.policy else { return };
        let phase = std::mem::replace(&mut self.phase, Phase::Ended);
        let Phase::Holding { tenure, .. } = phase else { return };
        (self.granted, self.status.grant) = (None, None);
        self.status.state = LeaseState::Released;
        match loss {
            // A release says that the work has stopped, and nobody has said that of work whose time ran
            // out: it may have been frozen, with all of this process. So it comes when others no longer
            // wait for it.
            Loss::Lapsed => {
                let lapsed = (leader.answered + self.ttl).max(now.boot);
                let is_fenced = leader.lock_delay.is_zero();
                self.not_before = if is_fenced { now.boot } else { lapsed + leader.lock_delay };
                let last = used.unwrap_or(0);
                self.phase = Phase::Leaving { tenure, last, goes_on: false };
            }
            Loss::Vanished | Loss::Regressed | Loss::Overlapped { .. } => {
                self.forgotten = used;
                let until = now.boot + Duration::from_millis(SILENCE_MS);
                self.phase = Phase::Owing { until };
            }
            // Nobody needs to be told of what the store itself said.
            _ => {}
        }
    }
}
