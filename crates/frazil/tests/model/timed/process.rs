//! A process: a plan, its watchdog, and a lane that uses every time it may.

use std::time::Duration;

use frazil_coord::internal::Tenure;
use frazil_coord::internal::keeper::{Effect, LaneNow, Next, Now, Plan, Reach, Setup};
use frazil_coord::internal::rules::REMOTE_WATCHDOG;
use frazil_coord::{ErrorKind, Nonce, Timing, UnixMs};
use frazil_coord::{FirstUse, Grant};

use super::Printed;
use super::request::{self, Answer};
use super::scope::{Keeps, Omitted, Scope};
use super::store::StoreState;

/// No request lasts longer.
const REQUEST_MAX_MS: u64 = frazil_coord::internal::rules::REQUEST_MAX.as_secs() * 1000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    node: usize,
    /// Which process on its node it is.
    birth: u8,
    plan: Printed<Plan>,
    reach: Reach,
    lane: Option<Lane>,
    /// The highest time that was used.
    pub(super) last: UnixMs,
    /// When the plan wants to be asked again.
    wake_at: u64,
    flight: Option<Flight>,
    pub(super) is_frozen: bool,
    pub(super) is_cut: bool,
    /// How many random numbers were drawn since time last went on.
    drawn: u64,
}

/// What a lane may use: times above the floor, up to the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Lane {
    floor: UnixMs,
    bound: UnixMs,
}

/// A request under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    next: Printed<Next>,
    asked: u64,
    arrives: u64,
    answered: u64,
    is_heard: bool,
    answer: Option<Printed<Answer>>,
}

/// How long a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Delivery {
    AtOnce,
    ArrivesLate,
    AnsweredLate,
    /// It is carried out, and nobody hears of it.
    Unheard,
}

impl Delivery {
    /// The slow ones; see [`Scope::slow`].
    pub(super) const fn slow(scope: &Scope) -> &'static [Self] {
        match scope.keeps {
            Keeps::Everything => &[Self::ArrivesLate, Self::AnsweredLate],
            _ => &[Self::ArrivesLate, Self::AnsweredLate, Self::Unheard],
        }
    }
}

impl Process {
    pub(super) fn start(scope: &Scope, node: usize, birth: u8, now: u64) -> Self {
        let heartbeat = scope.heartbeats[node];
        let timing = Timing::DEFAULT
            .with_ttl(Duration::from_secs(3 * heartbeat))
            .with_heartbeat(Duration::from_secs(heartbeat))
            .with_outage_budget(Duration::from_secs(10 * heartbeat));
        let setup = Setup {
            timing,
            layout: LAYOUT.into(),
            workers: Some((0, 0)),
            last_worker: 0,
            first_use: FirstUse::AfterSilence,
            holder: ["a", "b"][node].into(),
            info: std::collections::BTreeMap::new(),
            favourite: None,
        };
        let first = Now { boot: boot(now), unix: now, last: 0, nonce: Nonce::from_bits(0) };
        Self {
            node,
            birth,
            plan: Printed::new(Plan::new(setup, false, first)),
            reach: Reach::new(REMOTE_WATCHDOG, boot(now)),
            lane: None,
            last: 0,
            wake_at: now,
            flight: None,
            is_frozen: false,
            is_cut: false,
            drawn: 0,
        }
    }

    /// Whether something is to be done now, before time goes on.
    pub(super) fn is_due(&self, now: u64) -> bool {
        match &self.flight {
            Some(flight) if flight.answer.is_none() => flight.arrives <= now,
            Some(flight) => flight.answered <= now && !self.is_frozen,
            None => self.wake_at <= now && !self.is_frozen,
        }
    }

    /// Whether it is about to ask its plan what to do.
    pub(super) const fn asks(&self) -> bool {
        self.flight.is_none()
    }

    /// Does what is due. A request that is made now takes as long as is said.
    pub(super) fn step(
        &mut self,
        scope: &Scope,
        store: &mut StoreState,
        now: u64,
        delivery: Delivery,
    ) {
        if self.flight.is_none() {
            self.ask_plan(scope, now, delivery);
        }
        let Some(flight) = &mut self.flight else { return };
        if flight.answer.is_none() && flight.arrives <= now {
            let heartbeat_ms = scope.heartbeats[self.node] * 1000;
            let heard = match self.is_cut {
                true => request::failed(&flight.next.value, ErrorKind::Unavailable),
                false => request::execute(scope, store, &flight.next.value, heartbeat_ms),
            };
            let answer = match flight.is_heard {
                true => heard,
                false => request::failed(&flight.next.value, ErrorKind::Unknown),
            };
            flight.answer = Some(Printed::new(answer));
        }
        if flight.answered <= now && !self.is_frozen {
            self.hear(scope, now);
        }
    }

    fn ask_plan(&mut self, scope: &Scope, now: u64, delivery: Delivery) {
        let present = self.present(scope, now);
        let mut plan = self.plan.value.clone();
        let next = plan.next(present);
        self.plan = Printed::new(plan);
        match next {
            Next::Wait(until) => self.wake_at = now.max(millis(until)).max(now + 1),
            // It was refused.
            Next::Stop => self.wake_at = u64::MAX,
            next => {
                let late = now + REQUEST_MAX_MS;
                let (arrives, answered) = match delivery {
                    Delivery::AtOnce => (now, now),
                    Delivery::ArrivesLate => (late, late),
                    Delivery::AnsweredLate | Delivery::Unheard => (now, late),
                };
                let is_heard = delivery != Delivery::Unheard;
                let next = Printed::new(next);
                let flight = Flight { next, asked: now, arrives, answered, is_heard, answer: None };
                self.flight = Some(flight);
            }
        }
    }

    /// Hears the answer, as the production driver does.
    fn hear(&mut self, scope: &Scope, now: u64) {
        let Some(Flight { next, asked, answer: Some(answer), .. }) = self.flight.take() else {
            return;
        };
        let present = self.present(scope, now);
        let mut plan = self.plan.value.clone();
        let effect = match (answer.value, next.value) {
            (Answer::Acquired(answer), Next::Acquire(claim)) => {
                plan.acquired(present, &claim, answer)
            }
            (Answer::Extended(answer), _) => plan.extended(present, answer),
            (Answer::Meta(read, orphans), _) => {
                let is_read = scope.omitted != Omitted::ReadingMeta || plan.tenure().is_none();
                if is_read {
                    plan.meta_read(present, read, orphans);
                } else {
                    // As if it had not been asked for.
                    plan.meta_read(present, same(&plan, read), orphans);
                }
                Effect::None
            }
            (Answer::Written(written), _) => {
                plan.meta_written(present, written);
                Effect::None
            }
            (Answer::Listed(entries), _) => {
                plan.looked(present, entries);
                Effect::None
            }
            (Answer::Released(answer), _) => {
                plan.released(present, &answer);
                Effect::None
            }
            (Answer::Repaired, _) => {
                plan.repaired();
                Effect::None
            }
            (Answer::Acquired(_), _) => unreachable!("an answer to something else"),
        };
        self.plan = Printed::new(plan);
        self.apply(scope, effect, asked, now);
        let is_closed = scope.omitted != Omitted::ClosingWhenLate;
        if is_closed && self.plan.value.status().grant.is_none() {
            self.reach.close();
            self.lane = None;
        }
        self.reach.request_ended(self.plan.value.heard());
        self.hand_out(scope, now);
        self.wake_at = now;
    }

    fn apply(&mut self, scope: &Scope, effect: Effect, asked: u64, now: u64) {
        let lane_now = self.lane_now(scope, now);
        match effect {
            // Nobody leads here.
            Effect::None | Effect::Lead => {}
            Effect::Open(grant) => {
                let limited = self.reach.open(grant, boot(asked), lane_now);
                let has_watchdog = scope.omitted != Omitted::Watchdog;
                let Grant { floor, horizon, .. } = if has_watchdog { limited } else { grant };
                self.lane = Some(Lane { floor: floor.max(self.last), bound: horizon });
            }
            Effect::Raise(horizon) => {
                let limited = self.reach.raise(horizon, boot(asked), lane_now);
                let has_watchdog = scope.omitted != Omitted::Watchdog;
                self.raise(if has_watchdog { limited } else { Some(horizon) });
            }
            Effect::Close => {
                self.reach.close();
                self.lane = None;
            }
        }
    }

    /// The task of the watchdog turns.
    pub(super) fn turn(&mut self, scope: &Scope, now: u64) {
        let stopped = self.reach.turn(boot(now));
        if scope.omitted == Omitted::HearingAfterAStop {
            self.reach.request_ended(boot(now));
        }
        if stopped.is_some() {
            let present = self.present(scope, now);
            let mut plan = self.plan.value.clone();
            plan.woken(present);
            self.plan = Printed::new(plan);
            self.wake_at = now;
        }
        self.hand_out(scope, now);
    }

    fn hand_out(&mut self, scope: &Scope, now: u64) {
        let reach = self.reach.now(self.lane_now(scope, now));
        self.raise(reach);
    }

    fn raise(&mut self, bound: Option<UnixMs>) {
        if let (Some(lane), Some(bound)) = (&mut self.lane, bound) {
            lane.bound = lane.bound.max(bound);
        }
    }

    /// Uses every time that the lane may use while the clock shows these times.
    pub(super) fn stamp(&mut self, scope: &Scope, from: u64, to: u64) -> Option<(UnixMs, UnixMs)> {
        let Lane { floor, bound } = self.lane?;
        let (from, to) = (unix(scope, self.node, from), unix(scope, self.node, to));
        let first = from.max(floor + 1).max(self.last + 1);
        // A lane whose floor is ahead of now begins at once.
        let end = to.max(floor + 1).min(bound);
        if self.is_frozen || first > end {
            return None;
        }
        self.last = end;
        Some((first, end))
    }

    pub(super) fn time_passed(&mut self) {
        self.drawn = 0;
    }

    /// What is held, and may be released.
    pub(super) fn tenure(&self) -> Option<&Tenure> {
        self.plan.value.tenure()
    }

    fn present(&mut self, scope: &Scope, now: u64) -> Now {
        self.drawn += 1;
        // The last bits are zero, so that no pause is shortened.
        let process = u128::from(self.birth) << 1 | self.node as u128;
        let bits = (u128::from(now) << 16 | u128::from(self.drawn) << 4 | process) << 8;
        let (unix, last) = (unix(scope, self.node, now), self.last);
        Now { boot: boot(now), unix, last, nonce: Nonce::from_bits(bits) }
    }

    fn lane_now(&self, scope: &Scope, now: u64) -> LaneNow {
        LaneNow { boot: boot(now), unix: unix(scope, self.node, now), last: self.last }
    }
}

/// What times and numbers mean.
pub(super) const LAYOUT: &str = "model";

/// The look at meta of somebody who sees no change.
fn same(
    plan: &Plan,
    read: Result<frazil_coord::Look, frazil_coord::Error>,
) -> Result<frazil_coord::Look, frazil_coord::Error> {
    let incarnation = plan.tenure().map(|tenure| tenure.incarnation);
    read.map(|mut look| {
        if let (Some(meta), Some(incarnation)) = (&mut look.meta, incarnation) {
            meta.value.incarnation = incarnation;
        }
        look
    })
}

fn unix(scope: &Scope, node: usize, now: u64) -> UnixMs {
    now.saturating_add_signed(scope.ahead[node] * 1000)
}

fn boot(now: u64) -> Duration {
    Duration::from_millis(now)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("a short time")
}
