//! A store behind a network that loses, doubles and delays, by a seed.

mod dice;
mod request;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use frazil_coord::{
    Act, Changes, Commit, Committed, Entry, Error, ErrorKind, Finding, ForgottenReplica, FreeSlots,
    Group, Guarantees, Look, Meta, Namespace, Nonce, Put, Slot, Store, Timing, Version, Wanted,
    Watched, Written,
};

use self::dice::Dice;
use self::request::Request;

/// Lets requests and replies to a store go wrong. For tests: which ones is decided by a seed, so a
/// run can be repeated if the calls come in the same order.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Store>,
    chances: Chances,
    state: Mutex<State>,
}

/// How likely each fault is for each request, of a thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Chances {
    /// The request never arrives; the caller may or may not be sure of that.
    pub request_lost: u32,
    /// The request is carried out, and the caller does not hear of it.
    pub reply_lost: u32,
    /// The request is carried out twice at once; the caller hears of either.
    pub twice: u32,
    /// A copy of the request is carried out again at some later call, and nobody hears of it.
    pub late: u32,
}

/// How often each fault happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Faults {
    /// See [`Chances::request_lost`].
    pub requests_lost: u64,
    /// See [`Chances::reply_lost`].
    pub replies_lost: u64,
    /// See [`Chances::twice`].
    pub twice: u64,
    /// See [`Chances::late`]: those that were carried out so far.
    pub late: u64,
}

#[derive(Debug)]
struct State {
    dice: Dice,
    faults: Faults,
    /// Counted before and after every call.
    moment: u64,
    /// Copies on their way, each with the moment at which it arrives.
    late: Vec<(u64, Request)>,
}

/// How much later a late copy arrives at most: enough calls for others to come and go.
const LATE_MOMENTS_MAX: u64 = 48;

/// What happens to one request.
#[derive(Clone, Copy, Debug)]
struct Fate {
    request_lost: Option<ErrorKind>,
    reply_lost: bool,
    twice: bool,
    /// Which of two replies is heard, and which of two ways to say "no answer" is chosen.
    coin: bool,
}

impl Faulty {
    /// Hurts what is done through the wrapper.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, chances: Chances, seed: u64) -> Self {
        let state =
            State { dice: Dice(seed), faults: Faults::default(), moment: 0, late: Vec::new() };
        Self { inner, chances, state: Mutex::new(state) }
    }

    /// What happened so far.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.state().faults
    }

    /// Carries out every late copy that is still on its way.
    pub async fn settle(&self) {
        let late = std::mem::take(&mut self.state().late);
        self.deliver(late).await;
    }

    /// Does what nobody can repeat: only the request or the reply can be lost.
    async fn ask<T>(
        &self,
        act: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.deliver_due().await;
        let fate = self.state().draw(&self.chances, None);
        if let Some(kind) = fate.request_lost {
            return Err(Error::new(kind, act, self, "the request was lost"));
        }
        let reply = work.await;
        self.deliver_due().await;
        if fate.reply_lost { Err(self.no_reply(act)) } else { reply }
    }

    /// Carries out a request that writes, or does not, or does so twice, and keeps a copy.
    async fn write<T, F>(
        &self,
        act: Act,
        request: Request,
        again: impl Fn() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.deliver_due().await;
        let fate = self.state().draw(&self.chances, Some(&request));
        if let Some(kind) = fate.request_lost {
            return Err(Error::new(kind, act.word(), self, "the request was lost"));
        }
        let reply = match fate.twice {
            false => again().await,
            true => {
                let (first, second) = tokio::join!(again(), again());
                if fate.coin { first } else { second }
            }
        };
        self.deliver_due().await;
        if fate.reply_lost { Err(self.no_reply(act.word())) } else { reply }
    }

    fn no_reply(&self, act: &'static str) -> Error {
        Error::new(ErrorKind::Unknown, act, self, "the reply was lost")
    }

    /// Carries out the late copies whose moment has come.
    async fn deliver_due(&self) {
        let due = {
            let mut state = self.state();
            state.moment += 1;
            let now = state.moment;
            let (due, late) = state.late.drain(..).partition(|(moment, _)| *moment <= now);
            state.late = late;
            due
        };
        self.deliver(due).await;
    }

    async fn deliver(&self, late: Vec<(u64, Request)>) {
        for (_, request) in late {
            self.state().faults.late += 1;
            request.carry_out(&self.inner).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves counters and whole requests.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Decides what happens to a request; keeps a copy of it if it is to arrive late.
    fn draw(&mut self, chances: &Chances, request: Option<&Request>) -> Fate {
        // Always the same number of draws, so that a fault does not shift all later ones.
        let late = self.dice.happens(chances.late);
        let lost = self.dice.happens(chances.request_lost);
        let reply_lost = self.dice.happens(chances.reply_lost) && !lost;
        let twice = self.dice.happens(chances.twice) && !lost;
        let (coin, delay) = (self.dice.happens(500), 1 + self.dice.below(LATE_MOMENTS_MAX));
        let copied = request.cloned();
        let (late, twice) = (late && copied.is_some(), twice && copied.is_some());
        if late && let Some(request) = copied {
            self.late.push((self.moment + delay, request));
        }
        self.faults.requests_lost += u64::from(lost);
        self.faults.replies_lost += u64::from(reply_lost);
        self.faults.twice += u64::from(twice);
        // A request that may still arrive is not known to have failed.
        let kind = if late || coin { ErrorKind::Unknown } else { ErrorKind::Unavailable };
        Fate { request_lost: lost.then_some(kind), reply_lost, twice, coin }
    }
}

#[async_trait]
impl Store for Faulty {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn is_bound_to_process(&self) -> bool {
        self.inner.is_bound_to_process()
    }

    fn is_in_place(&self, slot: &Slot, nonce: Nonce) -> bool {
        self.inner.is_in_place(slot, nonce)
    }

    async fn diagnose(&self, timing: &Timing) -> Result<Vec<Finding>, Error> {
        self.ask("diagnose", self.inner.diagnose(timing)).await
    }

    async fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Error> {
        self.inner.neighbours(most).await
    }

    fn namespace(&self) -> Option<&Namespace> {
        self.inner.namespace()
    }

    fn changes_max(&self) -> usize {
        self.inner.changes_max()
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        self.ask(Act::Read.word(), self.inner.read(slots)).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.ask(Act::List.word(), self.inner.list(group)).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        self.ask(Act::FreeSlots.word(), self.inner.free_slots(wanted)).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        let request = Request::Commit(commit.clone());
        self.write(commit.act, request, || self.inner.commit(commit)).await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let request = Request::PutMeta(expected, meta.clone());
        self.write(Act::PutMeta, request, || self.inner.put_meta(expected, meta)).await
    }

    async fn settle(&self, written: &Written) -> Result<bool, Error> {
        self.ask(Act::Settle.word(), self.inner.settle(written)).await
    }

    async fn missing_replicas(&self) -> Result<Vec<String>, Error> {
        self.inner.missing_replicas().await
    }

    async fn forget_replica(&self, address: &str) -> Result<ForgottenReplica, Error> {
        self.inner.forget_replica(address).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        let request = Request::Forget(slot.clone(), version);
        self.write(Act::Forget, request, || self.inner.forget(slot, version)).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.ask(Act::Watch.word(), self.inner.watch(watched)).await
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
