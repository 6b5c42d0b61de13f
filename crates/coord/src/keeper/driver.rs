//! The task behind a lease: it alone asks the store, carries out what the plan says, and tells whoever
//! the lease is kept for.

use std::sync::Arc;
use std::time::Duration;

use frazil_fork::Birthmark;

use super::StoreTime;
use super::holder::{Holder, Pause, Woken};
use super::plan::{Effect, Next, Now, Plan};
use super::status::{Pool, Refusal};
use crate::error::{Error, ErrorKind};
use crate::lease::{Acquired, Claim, Extended, Loss, Released, Tenure};
use crate::nonce::Nonce;
use crate::protocol::Leasing;
use crate::record::UnixMs;
use crate::repair;
use crate::slot::Group;
use crate::store::{Entry, Look, Put, Store};
use crate::time::{boot_time, millis};

/// A release that takes longer counts as one that failed.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// Drives one plan to its end. A copy in a forked child does nothing: the lease is the parent's.
#[derive(Debug)]
pub struct Driver<T> {
    store: Arc<dyn Store>,
    plan: Plan,
    holder: T,
    /// Of the process that the lease belongs to.
    mark: Arc<Birthmark>,
}

/// What the store was asked and what it answered.
enum Answer {
    Meta(Result<Look, Error>, bool),
    Written(Result<Put, Error>),
    Acquired(Claim, Result<Acquired, Error>),
    Extended(Tenure, Result<Extended, Error>),
    Released(Tenure, UnixMs, Result<Released, Error>),
    Repaired(Result<(), Error>),
    Looked(Result<Vec<Entry>, Error>),
}

impl<T: Holder> Driver<T> {
    /// Drives a plan for a holder over a store, in the process of the mark alone.
    #[must_use]
    pub const fn new(store: Arc<dyn Store>, plan: Plan, holder: T, mark: Arc<Birthmark>) -> Self {
        Self { store, plan, holder, mark }
    }

    /// Goes on until the lease has ended.
    pub async fn run(mut self) {
        while self.mark.is_here() {
            match self.turn().await {
                Ok(true) => return self.finish(),
                Ok(false) => {}
                // No random bits: nothing can be claimed, and nothing more is risked.
                Err(refusal) => {
                    tracing::error!(refusal = %format_args!("{refusal:#}"), "the lease ends");
                    self.plan.refuse(refusal);
                    return self.finish();
                }
            }
        }
        // The task was copied by a fork, together with a runtime that goes on in the child. The lease
        // is the parent's: it is neither renewed nor released here, and nothing behind it is dropped.
        std::mem::forget(self);
    }

    fn finish(mut self) {
        self.holder.close();
        self.holder.tell(&self.plan);
    }

    /// Does the next thing. `true`: there is nothing more to do.
    async fn turn(&mut self) -> Result<bool, Refusal> {
        self.holder.inform(&mut self.plan);
        let now = present(&self.holder)?;
        match self.plan.next(now) {
            Next::Stop => return Ok(true),
            Next::Wait(until) => self.wait(until, false, now).await?,
            Next::Watch(until) => self.wait(until, true, now).await?,
            Next::Lapse(tenure) => self.holder.lost(&tenure, &Loss::Lapsed),
            next => self.request(next, now).await?,
        }
        self.holder.tell(&self.plan);
        Ok(false)
    }

    async fn wait(&mut self, until: Duration, looks: bool, now: Now) -> Result<(), Refusal> {
        // What is waited for is told before, not after.
        self.holder.tell(&self.plan);
        let pause = until.saturating_sub(now.boot);
        let (plan, store) = (&self.plan, self.store.as_ref());
        let woken = self.holder.wait(Pause { pause, looks, plan, store, now }).await;
        self.wake(woken)
    }

    fn wake(&mut self, woken: Woken) -> Result<(), Refusal> {
        let now = present(&self.holder)?;
        match woken {
            Woken::ByTime => {}
            Woken::ByExpiry => self.plan.expire(now),
            Woken::ByChange => self.plan.nudged(now),
            Woken::AfterStop => self.plan.woken(now),
            Woken::ToEnd(last) => self.plan.end(now, last),
        }
        Ok(())
    }

    /// Asks the store, unless the holder has something else in mind meanwhile: what the store was
    /// asked, the plan has not counted on yet.
    async fn request(&mut self, mut next: Next, asked: Now) -> Result<(), Refusal> {
        if let Next::Acquire(claim) = &mut next {
            self.holder.complete(self.store.as_ref(), claim, asked).await;
        }
        let early = tokio::select! {
            biased;
            woken = self.holder.interrupted() => Some(woken),
            () = std::future::ready(()) => None,
        };
        if let Some(woken) = early {
            return self.wake(woken);
        }
        let (store, is_claim) = (self.store.clone(), matches!(next, Next::Acquire(_)));
        let leases_workers = self.plan.leases_workers();
        let seen = if is_claim { self.holder.seen() } else { None };
        let mut answer = std::pin::pin!(ask(store.as_ref(), next, seen, leases_workers, asked));
        tokio::select! {
            biased;
            woken = self.holder.interrupted() => {
                self.wake(woken)?;
                // A claim may be carried out whether or not somebody waits for the answer. Without it
                // nobody would release the slot, and while this process lives it may never lapse.
                if is_claim {
                    let answer = answer.await;
                    self.answered(answer, asked)?;
                }
                Ok(())
            }
            answer = &mut answer => self.answered(answer, asked),
        }
    }

    fn answered(&mut self, answer: Answer, asked: Now) -> Result<(), Refusal> {
        let now = present(&self.holder)?;
        match answer {
            Answer::Meta(read, orphans) => {
                let held = self.plan.tenure().cloned();
                let loss = self.plan.meta_read(now, read, orphans);
                if let (Some(tenure), Some(loss)) = (held, loss) {
                    self.holder.lost(&tenure, &loss);
                }
            }
            Answer::Written(written) => self.plan.meta_written(now, written),
            Answer::Acquired(claim, answer) => {
                let clock = match &answer {
                    Ok(Acquired::Held(tenure)) => tenure.store_now,
                    _ => None,
                };
                let effect = self.plan.acquired(now, &claim, answer);
                self.apply(effect, asked.boot);
                self.pass_on(clock, asked, now);
            }
            Answer::Extended(tenure, answer) => {
                let clock = match &answer {
                    Ok(Extended::Held(tenure)) => tenure.store_now,
                    Ok(Extended::Lost(loss)) if !self.plan.has_lapsed(now) => {
                        self.holder.lost(&tenure, loss);
                        None
                    }
                    _ => None,
                };
                let effect = self.plan.extended(now, answer);
                self.apply(effect, asked.boot);
                self.pass_on(clock, asked, now);
            }
            Answer::Released(tenure, last, answer) => {
                self.holder.released(&tenure, last, &answer);
                self.plan.released(now, &answer);
            }
            Answer::Repaired(answer) => {
                if let Err(error) = answer {
                    tracing::warn!(error = %format_args!("{error:#}"), "lost records were not repaired");
                }
                self.plan.repaired();
            }
            Answer::Looked(seen) => self.looked(now, seen),
        }
        self.holder.request_ended(&self.plan);
        Ok(())
    }

    fn looked(&mut self, now: Now, seen: Result<Vec<Entry>, Error>) {
        let is_crowded = |plan: &Plan| plan.status().pool.as_ref().is_some_and(Pool::is_crowded);
        let was_crowded = is_crowded(&self.plan);
        self.plan.looked(now, seen);
        if let (false, true, Some(pool)) =
            (was_crowded, is_crowded(&self.plan), self.plan.status().pool)
        {
            tracing::warn!(%pool, "more than half of the workers cannot be taken");
        }
    }

    /// Does what an answer means, to a request made at some boot time.
    fn apply(&mut self, effect: Effect, asked: Duration) {
        match effect {
            Effect::None => {}
            Effect::Open(_) | Effect::Lead => self.holder.open(&self.plan, asked),
            Effect::Raise(horizon) => self.holder.raise(horizon, asked),
            Effect::Close => self.holder.close(),
        }
    }

    /// Lets the holder hear the store's clock, if that was in the answer.
    fn pass_on(&mut self, clock: Option<UnixMs>, asked: Now, answered: Now) {
        if let Some(unix) = clock.filter(|_| self.plan.reaches(answered)) {
            self.holder.hear(StoreTime { unix, asked: asked.boot, answered: answered.boot });
        }
    }
}

/// Asks the store what a plan wants to know.
async fn ask(
    store: &dyn Store,
    next: Next,
    seen: Option<Look>,
    leases_workers: bool,
    asked: Now,
) -> Answer {
    match next {
        Next::WriteMeta(expected, meta) => Answer::Written(store.put_meta(expected, &meta).await),
        Next::Acquire(claim) => {
            let answer = store.acquire_seen(&claim, seen).await;
            Answer::Acquired(claim, answer)
        }
        Next::Extend(tenure, ask) => {
            let answer = store.extend(&tenure, &ask).await;
            if let Err(error) = &answer {
                tracing::debug!(error = %format_args!("{error:#}"), slot = %tenure.slot, "a heartbeat failed");
            }
            Answer::Extended(tenure, answer)
        }
        Next::Release(tenure, last) => {
            let answer = release(store, &tenure, last).await;
            Answer::Released(tenure, last, answer)
        }
        Next::Repair(claim) => {
            let now = || asked.unix.saturating_add(millis(boot_time().saturating_sub(asked.boot)));
            Answer::Repaired(repair::lost_records(store, &claim, now).await.map(|_| ()))
        }
        Next::Look => Answer::Looked(store.list(Group::Workers).await),
        // The others are no requests.
        Next::ReadMeta | Next::Wait(_) | Next::Watch(_) | Next::Lapse(_) | Next::Stop => {
            let (read, orphans) = read_meta(store, leases_workers).await;
            Answer::Meta(read, orphans)
        }
    }
}

async fn release(store: &dyn Store, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
    let answer = tokio::time::timeout(RELEASE_PATIENCE, store.release(tenure, last)).await;
    answer
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Unknown, "release", store, "no answer yet")))
}

/// The namespace, and for one who leases workers whether it says nothing of them, and yet there are
/// some.
async fn read_meta(store: &dyn Store, leases_workers: bool) -> (Result<Look, Error>, bool) {
    let read = store.read(&[]).await;
    let says_nothing = match &read {
        Ok(look) => look.meta.as_ref().is_none_or(|meta| meta.value.is_blank()),
        Err(_) => false,
    };
    if !says_nothing || !leases_workers {
        return (read, false);
    }
    match store.list(Group::Workers).await {
        Ok(entries) => (read, !entries.is_empty()),
        Err(error) => (Err(error), false),
    }
}

/// The present of a holder.
///
/// # Errors
/// If the operating system gives no random bits.
pub fn present(holder: &impl Holder) -> Result<Now, Refusal> {
    let nonce = Nonce::mint().map_err(|error| Refusal::NoRandomBits(error.into()))?;
    Ok(Now { boot: boot_time(), unix: holder.now(), last: holder.last(), nonce })
}
