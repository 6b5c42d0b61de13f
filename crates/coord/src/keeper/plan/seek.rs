//! Finding a worker: claims, their answers, and a pool that has nothing to give.

use std::time::Duration;

use super::{Effect, Next, Now, Phase, Plan, millis};
use crate::error::Error;
use crate::keeper::Grant;
use crate::keeper::status::{ClockSkew, LeaseState, Waiting};
use crate::lease::{Acquired, Census, Choice, Claim, Tenure};
use crate::record::UnixMs;
use crate::rules::RUN_AHEAD_MS;

/// Before a full pool is asked again; each further pause is twice as long.
const POOL_PAUSE: Duration = Duration::from_millis(500);
/// The longest such pause. Stores announce workers that become free, except that some end a
/// presence by time alone and say nothing: such a worker waits for this long.
const POOL_PAUSE_MAX: Duration = Duration::from_secs(5);
/// The least: a store may judge by another clock than ours when a floor has passed.
const POOL_PAUSE_MIN: Duration = Duration::from_millis(50);
/// Between two looks at all records of a pool that is full.
const MEND_PAUSE: Duration = Duration::from_secs(60);

impl Plan {
    /// What somebody without a worker does next.
    pub(super) fn seek(&mut self, now: Now) -> Next {
        if let Some((expected, meta)) = &self.draft {
            return Next::WriteMeta(*expected, meta.clone());
        }
        let Some(meta) = &self.meta else { return Next::ReadMeta };
        let quarantine = meta.value.quarantine;
        if quarantine > now.unix.saturating_add(RUN_AHEAD_MS) {
            self.wait_for(Waiting::Quarantine { until: quarantine });
            let left = Duration::from_millis(quarantine - now.unix - RUN_AHEAD_MS);
            self.not_before = now.boot + left.min(self.setup.timing.heartbeat);
            // It may be raised meanwhile.
            self.meta = None;
            return Next::Wait(self.not_before);
        }
        // Before the first claim: what is claimed with a wrong clock blocks others.
        if !self.store_has_clock && !self.is_local && !self.peers.has_looked() {
            return self.look(now);
        }
        // A claim that may have been carried out comes first.
        let is_pinned = matches!(self.phase, Phase::Seeking { unsure: Some(_) });
        if let (Err(skew), false) = (self.peers.agree(now), is_pinned) {
            self.wait_for(Waiting::Clock(skew));
            return match now.boot < self.look_at {
                true => Next::Wait(self.look_at),
                false => self.look(now),
            };
        }
        let claim = self.claim(now);
        match self.phase {
            Phase::Mending => Next::Mend(claim),
            _ => Next::Acquire(claim),
        }
    }

    fn claim(&mut self, now: Now) -> Claim {
        let window = self.setup.timing.window(Duration::ZERO);
        let ask = self.believed(now).saturating_add(millis(window));
        let meta = self.meta.as_ref().expect("a claim follows the reading of meta");
        let any = Choice::Any {
            first: meta.value.first_worker,
            last: meta.value.last_worker,
            favourite: self.setup.favourite,
        };
        let (choice, nonce) = match &self.phase {
            Phase::Seeking { unsure: Some((choice, nonce)) } => (choice.clone(), *nonce),
            _ => (any, now.nonce),
        };
        Claim {
            choice,
            nonce,
            holder: self.setup.holder.clone(),
            info: self.setup.info.clone(),
            ttl: self.setup.timing.ttl,
            now: now.unix,
            ask,
            window_ms: meta.value.window_ms,
            quarantine: meta.value.quarantine,
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
        if !matches!(acquired, Acquired::Unsure(..)) {
            self.answered();
        }
        match acquired {
            Acquired::Held(tenure) => return self.hold(tenure, claim.ask, now),
            Acquired::Taken => self.phase = Phase::Seeking { unsure: None },
            Acquired::Full(census) => {
                self.counted(census);
                self.wait_for(Waiting::Pool(census));
                if census.blocked > 0 && self.mend_at <= now.boot {
                    self.mend_at = now.boot + MEND_PAUSE;
                    self.phase = Phase::Mending;
                } else {
                    self.phase = Phase::Seeking { unsure: None };
                    self.not_before = now.boot + self.pool_pause(census, now.unix);
                }
            }
            Acquired::MetaMoved => self.meta = None,
            Acquired::ClockOff { store_now } => {
                self.store_has_clock = true;
                self.phase = Phase::Seeking { unsure: None };
                self.wait_for(Waiting::Clock(ClockSkew::to_store(now.unix, store_now)));
                self.not_before = now.boot + self.setup.timing.heartbeat;
            }
            Acquired::Unsure(slot, version) => {
                let unsure = Some((Choice::This(slot, version), claim.nonce));
                self.phase = Phase::Seeking { unsure };
                self.pause(now);
            }
        }
        Effect::None
    }

    fn hold(&mut self, tenure: Tenure, ask: UnixMs, now: Now) -> Effect {
        let Some(worker) = tenure.slot.number() else {
            self.phase = Phase::Returning(Box::new(tenure));
            return Effect::None;
        };
        if self.is_of_another_namespace(&tenure) {
            self.meta = None;
            self.phase = Phase::Returning(Box::new(tenure));
            return Effect::None;
        }
        let is_short = match self.compare_clocks(&tenure, now) {
            Ok(is_past) => is_past || tenure.horizon < ask,
            Err(skew) => {
                self.wait_for(Waiting::Clock(skew));
                self.phase = Phase::Returning(Box::new(tenure));
                return Effect::None;
            }
        };
        let (token, floor, horizon) = (tenure.token, tenure.floor, tenure.usable);
        let grant = Grant { worker, token, floor, horizon };
        self.setup.favourite = Some(worker);
        self.granted_in = Some(tenure.incarnation);
        self.owes = false;
        self.heard = self.asked;
        self.meta_seen = self.asked;
        self.status.state = LeaseState::Held;
        self.status.grant = Some(grant);
        self.phase = Phase::Holding { tenure: Box::new(tenure), since: now.boot };
        self.refusals = 0;
        self.look_at = self.first_look(now);
        // A claim that was repeated for a while may give a horizon that is near or past by now.
        let pause = if is_short { Duration::ZERO } else { self.setup.timing.heartbeat };
        self.not_before = now.boot + pause;
        Effect::Open(grant)
    }

    /// Whether the namespace was created anew after the claim's quarantine was read from it. The claim
    /// names the version of meta, which some stores count from the beginning after a wipe.
    fn is_of_another_namespace(&self, tenure: &Tenure) -> bool {
        self.meta.as_ref().is_none_or(|meta| meta.value.incarnation != tenure.incarnation)
    }

    /// When a full pool is worth another claim without anybody saying so.
    fn pool_pause(&mut self, census: Census, now: UnixMs) -> Duration {
        let doubled = POOL_PAUSE * 2_u32.saturating_pow(self.refusals.min(10));
        self.refusals = self.refusals.saturating_add(1);
        let most = doubled.min(POOL_PAUSE_MAX);
        let Some(floor) = census.next_floor else { return most };
        let ready_in = floor.saturating_sub(RUN_AHEAD_MS).saturating_sub(now);
        Duration::from_millis(ready_in).clamp(POOL_PAUSE_MIN, most)
    }

    /// What was never used was given back, or not: it lapses by itself then.
    pub fn returned(&mut self, now: Now) {
        self.ended();
        self.phase = Phase::Seeking { unsure: None };
        self.not_before = now.boot + self.setup.timing.heartbeat;
    }

    /// The pool was looked after.
    pub fn mended(&mut self) {
        self.ended();
        self.phase = Phase::Seeking { unsure: None };
    }

    /// A slot may have become free: look at once.
    pub fn nudged(&mut self, now: Now) {
        if matches!(self.phase, Phase::Seeking { .. } | Phase::Mending) && self.failures == 0 {
            self.not_before = now.boot;
        }
    }
}
