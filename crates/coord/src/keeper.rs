//! The keeper of a lane's lease: it acquires a worker, renews it, replaces it when it is lost, releases it.
//!
//! All decisions are in [`Plan`], which is pure: it is told what time it is and what the store
//! answered, and says what to do next. A [`Driver`] carries that out, and tells the [`Holder`] for whom
//! the lease is kept: a [`Lane`], for which there is the [`Keeper`], or a leader, for whom there are
//! elections.

mod driver;
mod holder;
mod lease_log;
mod plan;
mod setup;
mod status;
mod watchdog;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use frazil_fork::Birthmark;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::lease_log::LeaseLog;
use self::watchdog::Watchdog;
use self::worker::Worker;
use crate::lease::Loss;
use crate::record::{Token, UnixMs};
use crate::slot::Group;
use crate::store::{Store, Watched};
use crate::watching::Watching;

pub use self::driver::{Driver, present};
pub use self::holder::{Holder, Pause, Woken};
pub use self::plan::{Effect, Next, Now, Plan};
pub use self::setup::{Candidacy, Setup};
pub use self::status::{
    ClockSkew, Judge, LeaseState, LeaseStatus, Pool, Refusal, Waiting, repair_command,
};
pub use self::watchdog::{LaneNow, Reach};
pub use crate::new_namespace::FirstUse;
pub use crate::rules::CLOCK_BOUND_MS;

/// What a lease is kept for: it uses times, each at most once, within the bounds that it is given.
pub trait Lane: Send + Sync + 'static {
    /// Now, by the clock that the times come from.
    fn now(&self) -> UnixMs;

    /// Where the clock that the times come from would be had it never stepped back.
    fn steady(&self) -> UnixMs {
        self.now()
    }

    /// Uses times under a new grant from now on, above its floor and above everything used under
    /// the grant before it, which is closed. Nobody who wants a time may fail in between.
    fn open(&self, grant: Grant);

    /// Allows times up to this one.
    fn raise(&self, horizon: UnixMs);

    /// The highest time that may have been used, 0 if none.
    fn last(&self) -> UnixMs;

    /// Uses no time any more; gives the highest that was used, 0 if none.
    fn close(&self) -> UnixMs;

    /// The store's own clock was heard, where it has one. Not told while the lane's clock is past the
    /// horizon: a lane that comes to believe its clock by this can go on at once.
    fn hear(&self, _store: StoreTime) {}

    /// The tenure that the times were used under was lost. It is told once for each.
    fn lost(&self, _loss: &Loss) {}
}

/// What the store's clock showed at some moment between two boot times of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTime {
    /// What it showed.
    pub unix: UnixMs,
    /// When the store was asked.
    pub asked: Duration,
    /// When it had answered.
    pub answered: Duration,
}

/// The right to use times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// In the name of this worker.
    pub worker: u32,
    /// With this token.
    pub token: Token,
    /// Only times after this.
    pub floor: UnixMs,
    /// And none after this, until it is raised.
    pub horizon: UnixMs,
}

/// Releasing must not keep a process from ending for longer than this.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// Keeps one lane in a worker until it is shut down or dropped; both close the lane first and
/// release the worker then. A copy in a forked child does neither: the lease is the parent's.
#[derive(Debug)]
pub struct Keeper {
    status: watch::Receiver<LeaseStatus>,
    /// Dropping it ends the task too.
    stop: Option<watch::Sender<()>>,
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
        let (stop, stopped) = watch::channel(());
        let watchdog = Arc::new(Watchdog::new(lane, store.clone()));
        let worker = Worker {
            watchdog: watchdog.clone(),
            publish: watch::Sender::new(LeaseStatus::at_first()),
            stop: stopped.clone(),
            is_stopped: false,
            watching: Watching::new(Watched::Group(Group::Workers)),
            lease_log: LeaseLog::default(),
            resumes,
        };
        let status = worker.publish.subscribe();
        let plan = Plan::new(setup, store.is_bound_to_process(), present(&worker)?);
        let publish = worker.publish.clone();
        let driver = Driver::new(store, plan, worker, Arc::new(Birthmark::new()));
        let task = tokio::spawn(async move {
            tokio::select! {
                () = driver.run() => {
                    // A refusal stays to be read until the owner lets go.
                    if matches!(publish.borrow().state, LeaseState::Refused(_)) {
                        worker::closed(&mut stopped.clone()).await;
                    }
                }
                () = watchdog.run() => {}
                () = out_of_patience(stopped.clone()) => {
                    tracing::warn!("no answer to the release: the worker lapses by itself");
                }
            }
        });
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

/// Waits until the owner has waited long enough for the end.
async fn out_of_patience(mut stopped: watch::Receiver<()>) {
    worker::closed(&mut stopped).await;
    tokio::time::sleep(RELEASE_PATIENCE).await;
}
