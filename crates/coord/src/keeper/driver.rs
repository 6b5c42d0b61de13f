//! The task behind a keeper: it alone waits, asks the store and tells the lane.

use std::sync::Arc;
use std::time::Duration;

use frazil_fork::Birthmark;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::journal::{Journal, SAY_AGAIN};
use super::leash::Leash;
use super::plan::{Effect, Next, Now, Plan};
use super::setup::Setup;
use super::status::{LeaseState, LeaseStatus, Pool, Refusal, Waiting};
use super::{Lane, StoreTime};
use crate::choose::last_worker_of;
use crate::error::Error;
use crate::lease::{Acquired, Ask, Choice, Claim, Extended, Released, Tenure};
use crate::mend;
use crate::nonce::Nonce;
use crate::protocol::Leasing;
use crate::record::UnixMs;
use crate::slot::Group;
use crate::store::{Look, Store, Watched};
use crate::time::boot_time;
use crate::watching::Watching;

/// Releasing must not keep a process from ending for longer than this.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// Keeps one lane in a worker until it is shut down or dropped; both close the lane first and
/// release the worker then. A copy in a forked child does neither: the lease is the parent's.
#[derive(Debug)]
pub struct Keeper {
    status: watch::Receiver<LeaseStatus>,
    /// Dropping it ends the task too.
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the task. It goes on by itself from here; see [`status`](Self::status).
    ///
    /// # Errors
    /// If the operating system gives no random bits.
    pub fn start(
        store: Arc<dyn Store>,
        lane: Arc<dyn Lane>,
        setup: Setup,
    ) -> Result<Self, Refusal> {
        Self::begin(store, lane, setup, false)
    }

    /// As [`start`](Self::start), and begins with the worker that a holder of the same name had last,
    /// if that one can be taken.
    ///
    /// # Errors
    /// As for `start`.
    pub fn resume(
        store: Arc<dyn Store>,
        lane: Arc<dyn Lane>,
        setup: Setup,
    ) -> Result<Self, Refusal> {
        Self::begin(store, lane, setup, true)
    }

    fn begin(
        store: Arc<dyn Store>,
        lane: Arc<dyn Lane>,
        setup: Setup,
        resumes: bool,
    ) -> Result<Self, Refusal> {
        let now = present(lane.as_ref())?;
        let plan = Plan::new(setup, store.is_bound_to_process(), now);
        let (publish, status) = watch::channel(plan.status().clone());
        let (stop, stopped) = oneshot::channel();
        let leash = Arc::new(Leash::new(lane, store.clone()));
        let watching = Watching::new(Watched::Group(Group::Workers));
        let (mark, journal) = (Birthmark::new(), Journal::default());
        let driver = Driver { store, leash, plan, publish, watching, mark, journal, resumes };
        let task = tokio::spawn(driver.run_on_leash(stopped));
        Ok(Self { status, stop: Some(stop), task: Some(task) })
    }

    /// How the lease is doing, now and whenever that changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<LeaseStatus> {
        self.status.clone()
    }

    /// Closes the lane, releases the worker and waits until both are done.
    pub async fn shutdown(mut self) {
        drop(self.stop.take());
        if let Some(task) = self.task.take() {
            // A task that panicked has nothing left to release.
            let _ = task.await;
        }
    }
}

struct Driver {
    store: Arc<dyn Store>,
    leash: Arc<Leash>,
    plan: Plan,
    publish: watch::Sender<LeaseStatus>,
    /// Open while a slot is sought and none is free.
    watching: Watching,
    /// Of the process that the lease belongs to.
    mark: Birthmark,
    journal: Journal,
    /// Whether the first claim asks for the last worker of a holder of the same name.
    resumes: bool,
}

impl Driver {
    async fn run_on_leash(self, stopped: oneshot::Receiver<()>) {
        let leash = self.leash.clone();
        tokio::select! {
            () = self.run(stopped) => {}
            () = leash.run() => {}
        }
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        while self.mark.is_here() {
            match self.turn(&mut stopped).await {
                Ok(true) => break,
                Ok(false) => {}
                // No random bits: nothing can be claimed, and nothing more is risked.
                Err(refusal) => {
                    tracing::error!(%refusal, "the lease ends");
                    self.plan.refuse(refusal);
                    break;
                }
            }
            self.tell();
        }
        if !self.mark.is_here() {
            return self.leave_to_parent();
        }
        self.finish().await;
        self.tell();
        // A refusal stays to be read until the owner lets go.
        if matches!(self.plan.status().state, LeaseState::Refused(_)) {
            let _ = stopped.await;
        }
    }

    /// Does the next thing, unless the owner stops it. `true`: there is nothing more to do.
    async fn turn(&mut self, stopped: &mut oneshot::Receiver<()>) -> Result<bool, Refusal> {
        let now = present(self.leash.lane.as_ref())?;
        let next = self.plan.next(now);
        let is_claim = matches!(next, Next::Acquire(_));
        let mut step = std::pin::pin!(self.carry_out(next, now));
        tokio::select! {
            biased;
            _ = stopped => {}
            done = &mut step => return done,
        }
        // A claim may be carried out whether or not somebody waits for the answer. Without it
        // nobody would release the worker, and while this process lives it may never lapse.
        if is_claim {
            let _ = tokio::time::timeout(RELEASE_PATIENCE, step).await;
        }
        Ok(true)
    }

    /// Does one thing. `true`: there is nothing more to do.
    ///
    /// Dropping this in the middle is safe: whatever the store was asked, the plan has not counted
    /// on it yet. What a claim took may stay taken, however.
    async fn carry_out(&mut self, next: Next, now: Now) -> Result<bool, Refusal> {
        let is_request = !matches!(next, Next::Wait(_) | Next::Stop);
        let is_over = self.do_next(next, now).await?;
        if is_request {
            self.leash.request_ended(self.plan.heard());
        }
        if self.plan.status().grant.is_none() {
            self.leash.revoke();
        }
        Ok(is_over)
    }

    async fn do_next(&mut self, next: Next, now: Now) -> Result<bool, Refusal> {
        match next {
            Next::Stop => return Ok(true),
            Next::Wait(until) => {
                // What is waited for is told before, not after.
                self.tell();
                self.journal.waits(self.plan.status(), now);
                let leash = self.leash.clone();
                tokio::select! {
                    waited = self.wait(until.saturating_sub(now.boot)) => waited?,
                    () = leash.woken() => self.plan.woken(present(leash.lane.as_ref())?),
                }
            }
            Next::ReadMeta => {
                let (read, orphans) = self.read_meta().await;
                let (present, held) =
                    (present(self.leash.lane.as_ref())?, self.plan.tenure().cloned());
                let loss = self.plan.meta_read(present, read, orphans);
                if let (Some(tenure), Some(loss)) = (held, loss) {
                    self.journal.lost(&tenure, &loss);
                    self.leash.lane.lost(&loss);
                }
            }
            Next::WriteMeta(expected, meta) => {
                let written = self.store.put_meta(expected, &meta).await;
                self.plan.meta_written(present(self.leash.lane.as_ref())?, written);
            }
            Next::Acquire(mut claim) => {
                self.prefer_last(&mut claim).await;
                self.acquire(&claim, now).await?;
            }
            Next::Extend(tenure, ask) => self.extend(&tenure, &ask, now).await?,
            Next::Return(tenure) => {
                if let Err(error) = self.store.release(&tenure, tenure.floor).await {
                    tracing::warn!(%error, "an unused worker lapses by itself");
                }
                self.plan.returned(present(self.leash.lane.as_ref())?);
            }
            Next::Look => {
                let was_crowded = self.is_crowded();
                let seen = self.store.list(Group::Workers).await;
                self.plan.looked(present(self.leash.lane.as_ref())?, seen);
                if let (false, true, Some(pool)) =
                    (was_crowded, self.is_crowded(), self.plan.status().pool)
                {
                    tracing::warn!(%pool, "more than half of the workers cannot be taken");
                }
            }
            Next::Mend(claim) => {
                let now = || self.leash.lane.now();
                if let Err(error) = mend::lost_records(self.store.as_ref(), &claim, now).await {
                    tracing::warn!(%error, "lost records were not mended");
                }
                self.plan.mended();
            }
        }
        Ok(false)
    }

    /// Lets the first claim ask for the worker that a holder of the same name had last.
    async fn prefer_last(&mut self, claim: &mut Claim) {
        if !std::mem::take(&mut self.resumes) {
            return;
        }
        // Without an answer any worker is as good; whether the store answers, the claim will tell.
        let Ok(entries) = self.store.list(Group::Workers).await else { return };
        let last = last_worker_of(&claim.holder, &entries, claim);
        if let Choice::Any { favourite, .. } = &mut claim.choice {
            *favourite = favourite.or(last);
        }
    }

    async fn acquire(&mut self, claim: &Claim, asked: Now) -> Result<(), Refusal> {
        let answer = self.store.acquire(claim).await;
        let answered = present(self.leash.lane.as_ref())?;
        let clock = match &answer {
            Ok(Acquired::Held(tenure)) => tenure.store_now,
            _ => None,
        };
        let effect = self.plan.acquired(answered, claim, answer);
        self.apply(effect, asked.boot);
        self.pass_on(clock, asked, answered);
        Ok(())
    }

    async fn extend(&mut self, tenure: &Tenure, ask: &Ask, asked: Now) -> Result<(), Refusal> {
        let answer = self.store.extend(tenure, ask).await;
        let answered = present(self.leash.lane.as_ref())?;
        let clock = match &answer {
            Ok(Extended::Held(tenure)) => tenure.store_now,
            Ok(Extended::Lost(loss)) => {
                self.journal.lost(tenure, loss);
                self.leash.lane.lost(loss);
                None
            }
            Err(_) => None,
        };
        let effect = self.plan.extended(answered, answer);
        self.apply(effect, asked.boot);
        self.pass_on(clock, asked, answered);
        Ok(())
    }

    /// The namespace, and whether it says nothing of workers, and yet there are some.
    async fn read_meta(&self) -> (Result<Look, Error>, bool) {
        let read = self.store.read(&[]).await;
        let says_nothing = match &read {
            Ok(look) => look.meta.as_ref().is_none_or(|meta| meta.value.is_blank()),
            Err(_) => false,
        };
        if !says_nothing {
            return (read, false);
        }
        match self.store.list(Group::Workers).await {
            Ok(entries) => (read, !entries.is_empty()),
            Err(error) => (Err(error), false),
        }
    }

    /// Does what an answer means, to a request made at some boot time.
    fn apply(&mut self, effect: Effect, asked: Duration) {
        match effect {
            Effect::None => {}
            Effect::Open(grant) => {
                self.watching = Watching::new(Watched::Group(Group::Workers));
                self.journal.leased(grant);
                if let Some(tenure) = self.plan.tenure() {
                    self.leash.open(grant, tenure.nonce, asked);
                }
            }
            Effect::Raise(horizon) => self.leash.raise(horizon, asked),
            Effect::Close => {
                self.leash.close();
            }
        }
    }

    /// Lets the lane hear the store's clock, if that was in the answer.
    fn pass_on(&self, clock: Option<UnixMs>, asked: Now, answered: Now) {
        if let Some(unix) = clock.filter(|_| self.plan.reaches(answered)) {
            self.leash.lane.hear(StoreTime { unix, asked: asked.boot, answered: answered.boot });
        }
    }

    /// Waits, and while a slot is sought also for the store to say that something changed.
    async fn wait(&mut self, pause: Duration) -> Result<(), Refusal> {
        let (LeaseState::Seeking(waiting) | LeaseState::Replacing(_, waiting)) =
            &self.plan.status().state
        else {
            tokio::time::sleep(pause).await;
            return Ok(());
        };
        // The plan, asked again too early, says again how long to wait.
        let pause = pause.min(SAY_AGAIN);
        if !matches!(waiting, Waiting::Pool(_)) {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        self.watching.begin(self.store.as_ref(), boot_time()).await;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.watching.changed() => self.plan.nudged(present(self.leash.lane.as_ref())?),
        }
        Ok(())
    }

    fn is_crowded(&self) -> bool {
        self.plan.status().pool.as_ref().is_some_and(Pool::is_crowded)
    }

    /// The task was copied by a fork, together with a runtime that goes on in the child. The lease is
    /// the parent's: it is neither renewed nor released here, and nothing behind it is dropped.
    fn leave_to_parent(self) {
        std::mem::forget(self);
    }

    /// Closes the lane, then releases.
    async fn finish(&mut self) {
        let last = self.leash.close();
        let Some(tenure) = self.plan.end() else { return };
        let release = self.store.release(&tenure, last);
        match tokio::time::timeout(RELEASE_PATIENCE, release).await {
            Ok(Ok(Released::Done)) => self.journal.released(&tenure, last),
            Ok(Ok(Released::NotHeld)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the worker lapses by itself"),
            Err(_) => tracing::warn!("no answer to the release: the worker lapses by itself"),
        }
    }

    fn tell(&self) {
        let status = self.plan.status();
        self.publish.send_if_modified(|published| {
            let changed = published != status;
            if changed {
                published.clone_from(status);
            }
            changed
        });
    }
}

fn present(lane: &dyn Lane) -> Result<Now, Refusal> {
    let nonce = Nonce::mint().map_err(|error| Refusal::NoRandomBits(error.to_string()))?;
    Ok(Now { boot: boot_time(), unix: lane.now(), last: lane.last(), nonce })
}
