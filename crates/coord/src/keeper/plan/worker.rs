//! The policy of a worker: any slot of a pool, which is looked at now and then for how full it is, and
//! for what others' clocks say.

use std::ops::ControlFlow;
use std::time::Duration;

use super::peers::Peers;
use super::{Next, Now, Phase, Plan, Policy};
use crate::choose::rank_free;
use crate::error::Error;
use crate::keeper::setup::Setup;
use crate::keeper::status::{ClockSkew, Judge, LeaseState, Pool, Waiting};
use crate::lease::{Census, Choice, Claim};
use crate::record::UnixMs;
use crate::rules::{RUN_AHEAD_MS, WINDOW_MAX_MS};
use crate::store::{Entry, FreeSlots, Look, Wanted};
use crate::time::doubled;

/// Before a full pool is asked again; each further pause is twice as long.
const POOL_PAUSE: Duration = Duration::from_millis(500);
/// The longest such pause. Stores announce workers that become free, except that some end a
/// presence by time alone and say nothing: such a worker waits for this long.
const POOL_PAUSE_MAX: Duration = Duration::from_secs(5);
/// The least: a store may judge by another clock than ours when a floor has passed.
const POOL_PAUSE_MIN: Duration = Duration::from_millis(50);
/// Between two looks at all records of a pool that is full.
const REPAIR_PAUSE: Duration = Duration::from_secs(60);

/// Between two looks, at least: soon enough to tell of a pool that fills up.
const LOOK_PAUSE: Duration = Duration::from_mins(2);
/// More for each slot that was seen, so that all holders together read some thousand records in a
/// second, however many they are.
const LOOK_PAUSE_PER_SLOT: Duration = Duration::from_secs(1);

/// What is particular to a worker.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) setup: Setup,
    /// When a pool that is full is to be repaired again.
    repair_at: Duration,
    /// How often in a row the pool had nothing to give.
    refusals: u32,
    /// What judges our clock where the store has none.
    peers: Peers,
    /// When the pool is to be looked at, and when that was last asked for.
    look_at: Duration,
    look_asked: Duration,
    /// Whether the next look follows soon after the last one.
    second_look: bool,
}

impl Worker {
    pub(super) fn new(setup: Setup, now: Now) -> Self {
        Self {
            setup,
            repair_at: now.boot,
            refusals: 0,
            peers: Peers::default(),
            look_at: now.boot,
            look_asked: now.boot,
            second_look: false,
        }
    }

    /// A worker was found.
    pub(super) fn found(&mut self, worker: u32, now: Now) {
        self.setup.favourite = Some(worker);
        self.refusals = 0;
        self.look_at = self.first_look(now);
    }

    /// When a new holder looks for the first time: a heartbeat later, and then not all at once. In a
    /// crowd that starts together each look reads as many records as there are in it, and those who
    /// still seek would wait for all of that.
    fn first_look(&self, now: Now) -> Duration {
        let chance = u32::try_from(now.nonce.bits() % 256).expect("less than 256");
        let heartbeat = self.setup.timing.heartbeat;
        now.boot + heartbeat + heartbeat * (256 - chance) / 256
    }

    /// When a full pool is worth another claim without anybody saying so.
    fn pool_pause(&mut self, census: Census, now: UnixMs) -> Duration {
        let most = doubled(POOL_PAUSE, self.refusals, POOL_PAUSE_MAX);
        self.refusals = self.refusals.saturating_add(1);
        let Some(floor) = census.next_floor else { return most };
        ready_in(floor, now).clamp(POOL_PAUSE_MIN, most)
    }
}

/// How long until times above a floor can be used: they may run ahead of the clock a little.
const fn ready_in(floor: UnixMs, now: UnixMs) -> Duration {
    Duration::from_millis(floor.saturating_sub(RUN_AHEAD_MS).saturating_sub(now))
}

impl Plan {
    /// Until there is something to do a holder looks around, if the store answers.
    pub(super) fn look_or_wait(&mut self, now: Now) -> Next {
        let Policy::Worker(worker) = &self.policy else { return Next::Wait(self.not_before) };
        let look_at = worker.look_at;
        let may_look = matches!(self.phase, Phase::Holding { .. }) && self.failures == 0;
        if may_look && now.boot >= look_at {
            return self.look(now);
        }
        Next::Wait(if may_look { self.not_before.min(look_at) } else { self.not_before })
    }

    /// Asks for a look.
    fn look(&mut self, now: Now) -> Next {
        if let Policy::Worker(worker) = &mut self.policy {
            worker.look_asked = now.boot;
        }
        Next::Look
    }

    /// The workers to be claimed, or what to do before.
    pub(super) fn any_worker(&mut self, now: Now) -> ControlFlow<Next, Choice> {
        let (Policy::Worker(worker), Some(meta)) = (&self.policy, &self.meta) else {
            return ControlFlow::Break(Next::Stop);
        };
        // Before the first claim: what is claimed with a wrong clock blocks others.
        if !self.store_has_clock && !self.is_local && !worker.peers.has_looked() {
            return ControlFlow::Break(self.look(now));
        }
        let (agreed, look_at) = (worker.peers.agree(now), worker.look_at);
        let choice = Choice::Any {
            first: meta.value.first_worker,
            last: meta.value.last_worker,
            favourite: worker.setup.favourite,
        };
        if let Err(skew) = agreed {
            self.wait_for(Waiting::Clock(skew));
            let wait = Next::Wait(look_at);
            return ControlFlow::Break(if now.boot < look_at { wait } else { self.look(now) });
        }
        ControlFlow::Continue(choice)
    }

    /// Whether our clock agrees with those of live peers, as far as that can be told.
    pub(super) fn agree_with_peers(&self, now: Now) -> Result<(), ClockSkew> {
        match &self.policy {
            Policy::Worker(worker) => worker.peers.agree(now),
            Policy::Leader(_) => Ok(()),
        }
    }

    /// Nothing can be taken now.
    pub(super) fn full(&mut self, census: Census, now: Now) {
        self.phase = Phase::Seeking { unsure: None };
        match &mut self.policy {
            Policy::Worker(worker) => {
                if census.blocked > 0 && worker.repair_at <= now.boot {
                    worker.repair_at = now.boot + REPAIR_PAUSE;
                    self.phase = Phase::Repairing;
                } else {
                    self.not_before = now.boot + worker.pool_pause(census, now.unix);
                }
                self.counted(census);
                self.wait_for(Waiting::Pool(census));
            }
            Policy::Leader(leader) => {
                let pause =
                    census.next_floor.map_or(leader.retry, |floor| ready_in(floor, now.unix));
                self.not_before = now.boot + pause.max(POOL_PAUSE_MIN).min(leader.retry);
                self.look_again(now);
            }
        }
    }

    /// The pool was looked at.
    pub fn looked(&mut self, now: Now, seen: Result<Vec<Entry>, Error>) {
        self.ended();
        let Policy::Worker(worker) = &mut self.policy else { return };
        let heartbeat = self.heartbeat;
        let Ok(entries) = seen else {
            // A renewal or a claim will tell whether the store is in trouble.
            worker.peers.saw_nothing();
            worker.look_at = now.boot + heartbeat;
            return;
        };
        let slots = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let long = LOOK_PAUSE.max(LOOK_PAUSE_PER_SLOT.saturating_mul(slots));
        worker.look_at = now.boot + long;
        if !self.store_has_clock {
            let window_ms = self.meta.as_ref().map_or(WINDOW_MAX_MS, |meta| meta.value.window_ms);
            let window = Duration::from_millis(window_ms);
            worker.peers.saw(&entries, &self.holder, window, worker.look_asked, now);
            let agreed = worker.peers.agree(now);
            // Of two looks soon after each other the second tells what clocks others have; while
            // ours is in doubt all looks are such.
            worker.second_look = !worker.second_look || agreed.is_err();
            if worker.second_look {
                worker.look_at = now.boot + heartbeat;
            }
            self.trust(agreed, now);
        }
        self.count(entries, now);
    }

    /// Goes by what the peers say about our clock.
    fn trust(&mut self, agreed: Result<(), ClockSkew>, now: Now) {
        match (agreed, &self.status.state) {
            (Err(skew), LeaseState::Held | LeaseState::Distrusted(_)) => {
                self.status.state = LeaseState::Distrusted(skew);
            }
            // The horizon is raised by an extension, at once.
            (Ok(()), LeaseState::Distrusted(ClockSkew { judge: Judge::Peers, .. })) => {
                self.not_before = now.boot;
            }
            _ => {}
        }
    }

    /// The pool was looked after.
    pub fn repaired(&mut self) {
        self.ended();
        self.phase = Phase::Seeking { unsure: None };
    }

    /// A slot may have become free: look at once.
    pub fn nudged(&mut self, now: Now) {
        if matches!(self.phase, Phase::Seeking { .. } | Phase::Repairing) && self.failures == 0 {
            self.not_before = now.boot;
        }
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
        let free_slots = FreeSlots { look, is_complete: true, held: 0 };
        let (_, census) = rank_free(free_slots, &wanted, &judge);
        self.counted(census);
    }

    /// How the pool is doing, by whatever was asked.
    pub(super) fn counted(&mut self, census: Census) {
        let Some(meta) = &self.meta else { return };
        let workers = meta.value.last_worker.saturating_sub(meta.value.first_worker);
        self.status.pool = Some(Pool { size: workers.saturating_add(1), census });
    }
}
