//! The decisions of a plan, told as conversations with a store.

mod holding;
mod leading;
mod looking;
mod meta;
mod seeking;

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Effect, Next, Now, Plan};
use crate::error::{Error, ErrorKind};
use crate::keeper::{FirstUse, Grant, Setup};
use crate::lease::{Acquired, Ask, Claim, Extended, Released, Tenure};
use crate::nonce::Nonce;
use crate::record::{FORMAT, Meta, Token, UnixMs, Version, Versioned};
use crate::slot::Slot;
use crate::store::{Entry, Look};
use crate::timing::Timing;

/// When the conversations begin, in real time.
const START: UnixMs = 1_800_000_000_000;
/// A nonce that makes pauses no shorter.
const EVEN: u128 = 256;
/// The outage budget, in milliseconds.
const BUDGET_MS: u64 = 600_000;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn setup() -> Setup {
    Setup {
        timing: Timing::default(),
        layout: "layout".into(),
        workers: None,
        last_worker: 1023,
        first_use: FirstUse::AtOnce,
        holder: "me".into(),
        info: BTreeMap::new(),
        favourite: None,
    }
}

fn meta() -> Meta {
    Meta {
        format: FORMAT,
        incarnation: Nonce::from_bits(1),
        layout: "layout".into(),
        first_worker: 0,
        last_worker: 1023,
        window_ms: BUDGET_MS,
        quarantine: 0,
        token_floor: Token::default(),
        created: START,
    }
}

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "test", "memory:", "as the test wants")
}

/// A plan, the clocks it is told, and short words for what a driver does.
struct PlanFixture {
    plan: Plan,
    now: Now,
    /// What a look at the pool shows.
    pool: Vec<Entry>,
}

impl PlanFixture {
    fn new(setup: Setup) -> Self {
        let nonce = Nonce::from_bits(EVEN);
        let now = Now { boot: seconds(1000), unix: START, last: 0, nonce };
        Self { plan: Plan::new(setup, false, now), now, pool: Vec::new() }
    }

    /// A plan that has read meta.
    fn met(setup: Setup) -> Self {
        let mut plan_fixture = Self::new(setup);
        plan_fixture.read(Ok(Some((3, meta()))));
        plan_fixture
    }

    /// A plan that holds worker 7.
    fn holding() -> Self {
        let mut plan_fixture = Self::met(setup());
        plan_fixture.take(7);
        plan_fixture
    }

    /// Time goes by on every clock.
    fn pass(&mut self, time: Duration) {
        self.now.boot += time;
        self.now.unix += u64::try_from(time.as_millis()).unwrap();
    }

    /// What is next, once the pool was looked at if that was.
    fn next(&mut self) -> Next {
        // Every nonce is another one, and all have the same remainder.
        self.now.nonce = Nonce::from_bits(self.now.nonce.bits() + 512);
        match self.plan.next(self.now) {
            Next::Look => {
                self.plan.looked(self.now, Ok(self.pool.clone()));
                self.next()
            }
            // What a holder reads between its renewals.
            Next::ReadMeta if self.plan.tenure().is_some() => {
                let meta = Some(Versioned { version: Version(3), value: meta() });
                let look = Look { meta, ..Look::default() };
                assert_eq!(self.plan.meta_read(self.now, Ok(look), false), None);
                self.next()
            }
            next => next,
        }
    }

    /// How long the plan wants to wait now; zero if it does not.
    fn pause(&mut self) -> Duration {
        match self.next() {
            Next::Wait(until) => until - self.now.boot,
            _ => Duration::ZERO,
        }
    }

    /// Lets the time pass that the plan wants to wait.
    fn wait(&mut self) {
        let pause = self.pause();
        self.pass(pause);
        // A holder may have waited for the next reading of meta.
        if self.plan.tenure().is_some() {
            let pause = self.pause();
            self.pass(pause);
        }
    }

    fn read(&mut self, read: Result<Option<(u64, Meta)>, Error>) {
        assert!(matches!(self.next(), Next::ReadMeta), "{:?}", self.next());
        let versioned = |(version, value)| Versioned { version: Version(version), value };
        let look =
            |meta: Option<(u64, Meta)>| Look { meta: meta.map(versioned), ..Look::default() };
        self.plan.meta_read(self.now, read.map(look), false);
    }

    /// The meta that the plan wants to write.
    fn draft(&mut self) -> (Option<Version>, Meta) {
        match self.next() {
            Next::WriteMeta(expected, meta) => (expected, meta),
            other => panic!("wanted to write meta, got {other:?}"),
        }
    }

    fn claim(&mut self) -> Claim {
        match self.next() {
            Next::Acquire(claim) => claim,
            other => panic!("wanted a claim, got {other:?}"),
        }
    }

    /// The store answers the claim.
    fn answer(&mut self, claim: &Claim, answer: Result<Acquired, Error>) -> Effect {
        self.plan.acquired(self.now, claim, answer)
    }

    /// Claims and gets this worker with all that was asked for.
    fn take(&mut self, worker: u32) -> Grant {
        let claim = self.claim();
        let tenure = tenure(&claim, worker, claim.ask);
        match self.answer(&claim, Ok(Acquired::Held(tenure))) {
            Effect::Open(grant) => grant,
            other => panic!("wanted a grant, got {other:?}"),
        }
    }

    /// Ends the plan; what it gives back, if anything, once that is known to be done.
    fn end(&mut self) -> Option<(Tenure, UnixMs)> {
        self.plan.end(self.now, Some(self.now.last));
        match self.next() {
            Next::Release(tenure, last) => {
                self.plan.released(self.now, &Ok(Released::Done));
                Some((tenure, last))
            }
            Next::Stop => None,
            other => panic!("wanted the end, got {other:?}"),
        }
    }

    fn extension(&mut self) -> (Tenure, Ask) {
        match self.next() {
            Next::Extend(tenure, ask) => (tenure, ask),
            other => panic!("wanted an extension, got {other:?}"),
        }
    }

    fn extended(&mut self, answer: Result<Extended, Error>) -> Effect {
        self.plan.extended(self.now, answer)
    }

    /// Extends with all that was asked for; the ask.
    fn renew(&mut self) -> Ask {
        let (tenure, ask) = self.extension();
        let horizon = tenure.horizon.max(ask.horizon);
        let tenure = Tenure { horizon, usable: horizon, store_now: None, ..tenure };
        assert_eq!(self.extended(Ok(Extended::Held(tenure))), Effect::Raise(horizon));
        ask
    }
}

fn tenure(claim: &Claim, worker: u32, horizon: UnixMs) -> Tenure {
    Tenure {
        slot: Slot::worker(worker),
        token: Token(claim.now),
        nonce: claim.nonce,
        version: Version(9),
        floor: claim.now - 5000,
        horizon,
        expires: None,
        store_now: None,
        renewed: 0,
        usable: horizon,
        holder: claim.holder.clone(),
        info: claim.info.clone(),
        incarnation: Nonce::from_bits(1),
        settling: crate::lease::Settling::default(),
    }
}
