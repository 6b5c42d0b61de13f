//! Many jobs over many nodes, each under a leadership of its own.
//!
//! Every node registers the same jobs. Each job is run by one node at a time, the one that leads
//! its election, with a fencing token that no earlier run had. Jobs spread evenly by themselves,
//! and move when nodes come and go.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use frazil_election::Elections;
//! use frazil_election::processor::{Processor, Run};
//! use frazil_coord::MemoryStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let elections = Elections::new(Arc::new(MemoryStore::new()));
//! let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
//! let work = move |run: Run| {
//!     let told = told.clone();
//!     async move {
//!         // Whatever is written says this token, and a lower one is refused there.
//!         told.send((run.name().to_owned(), run.token()))?;
//!         run.cancelled().await;
//!         Ok(())
//!     }
//! };
//! let processor = Processor::new(elections, "billing", "node-1")
//!     .job("invoices", work.clone())
//!     .job("reminders", work)
//!     .drain(Duration::from_secs(10))
//!     .start()?;
//! let (first, second) = (heard.recv().await, heard.recv().await);
//! assert!(first.is_some() && second.is_some());
//! let report = processor.stop().await;
//! assert!(report.unfinished.is_empty());
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! | to | see |
//! |---|---|
//! | run jobs | [`Processor`], [`Run`] |
//! | see what they do | [`Running::status`], [`Running::events`] |
//! | know where jobs go | [`placement`], [`balance`] |
//! | know what follows a failure | [`Restart`], [`WhenDone`] |

mod attempt;
pub mod balance;
mod job;
mod membership;
mod node;
mod options;
pub mod placement;
mod quota;
mod rebalance;
mod refusal;
mod restart;
mod run;
mod running;
mod status;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use self::options::{Options, PerJob};
use self::run::Work;
use crate::{Elections, Settings};

pub use self::attempt::BoxError;
pub use self::balance::Balance;
pub use self::refusal::ProcessorError;
pub use self::restart::{Restart, WhenDone};
pub use self::run::Run;
pub use self::running::{Report, Running};
pub use self::status::{Event, JobState, JobStatus, Status, Step, StopReason};

/// Jobs to be run, each by one node at a time. Options go together in any combination.
#[must_use]
pub struct Processor {
    elections: Elections,
    app: String,
    jobs: Vec<(Arc<str>, Work)>,
    options: Options,
}

impl Processor {
    /// A processor of an application. `instance` is what people call this node; jobs prefer to
    /// return to the instance that they were on.
    pub fn new(elections: Elections, app: impl Into<String>, instance: impl Into<String>) -> Self {
        let mut options = Options::default();
        options.settings.instance = instance.into();
        Self { elections, app: app.into(), jobs: Vec::new(), options }
    }

    /// Adds a job. `work` is called whenever this node is to run it, and should return soon after
    /// [`Run::cancelled`]. An error or a panic concerns this job alone; see
    /// [`restart`](Self::restart). To return without having been cancelled is to be done; see
    /// [`when_done`](Self::when_done).
    pub fn job<F>(
        mut self,
        name: impl Into<String>,
        work: impl Fn(Run) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let work: Work = Arc::new(move |run| Box::pin(work(run)));
        self.jobs.push((name.into().into(), work));
        self
    }

    /// The times of all its elections: TTL, heartbeat, retry, lock delay, and metadata. The
    /// instance stays what it was.
    pub fn settings(mut self, settings: Settings) -> Self {
        let instance = std::mem::take(&mut self.options.settings.instance);
        self.options.settings = Settings { instance, ..settings };
        self
    }

    /// How long this node waits, for each job, before its first campaign.
    pub fn start_delay(mut self, delay: impl Fn(&str) -> Duration + Send + Sync + 'static) -> Self {
        self.options.start_delay = Some(PerJob(Arc::new(delay)));
        self
    }

    /// After how long, for each job, this node gives it up of its own accord: if another node
    /// has at least two jobs fewer, else it asks again after as long. See [`strict`](Self::strict).
    pub fn voluntary_timeout(
        mut self,
        timeout: impl Fn(&str) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.options.voluntary_timeout = Some(PerJob(Arc::new(timeout)));
        self
    }

    /// Jobs are given up at their voluntary time-out whether or not that helps anybody.
    pub const fn strict(mut self) -> Self {
        self.options.strict = true;
        self
    }

    /// This node campaigns for no more jobs than this at a time.
    pub const fn quota(mut self, quota: usize) -> Self {
        self.options.quota = Some(quota);
        self
    }

    /// A processor without jobs waits for its end instead of being refused.
    pub const fn block_without_jobs(mut self) -> Self {
        self.options.blocks_without_jobs = true;
        self
    }

    /// How long a job has to stop after it was cancelled, 30 s by default; then it is aborted.
    /// Never longer than its leadership lasts.
    pub const fn drain(mut self, drain: Duration) -> Self {
        self.options.drain = drain;
        self
    }

    /// How long before the end of a leadership that cannot be renewed its job is cancelled: by
    /// default a quarter of the TTL. A job that has not stopped by the last quarter of this is
    /// aborted.
    pub const fn stop_budget(mut self, budget: Duration) -> Self {
        self.options.stop_budget = Some(budget);
        self
    }

    /// What follows when a job fails.
    pub const fn restart(mut self, restart: Restart) -> Self {
        self.options.restart = restart;
        self
    }

    /// What follows when a job returns without an error.
    pub const fn when_done(mut self, when_done: WhenDone) -> Self {
        self.options.when_done = when_done;
        self
    }

    /// How eagerly jobs are moved to nodes that have too few. `None`: never.
    pub const fn balance(mut self, balance: Option<Balance>) -> Self {
        self.options.balance = balance;
        self
    }

    /// How much later each node goes for a free job than the one that ranks before it: 10 ms by
    /// default. It should be longer than the way to the store and back.
    pub const fn rank_step(mut self, step: Duration) -> Self {
        self.options.rank_step = step;
        self
    }

    /// How long this node waits at its start to see others that start too: 250 ms by default.
    pub const fn settle(mut self, settle: Duration) -> Self {
        self.options.settle = settle;
        self
    }

    /// Starts it. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// If there are no jobs, names or times do not fit, or there are no random bits.
    pub fn start(self) -> Result<Running, ProcessorError> {
        let names = self.checked()?;
        Running::start(self, names)
    }

    /// Starts it and runs until `shutdown`; then stops every job and gives it back, each as soon
    /// as it has stopped.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Report, ProcessorError> {
        let running = self.start()?;
        shutdown.await;
        Ok(running.stop().await)
    }

    /// The names of the jobs, if everything fits.
    fn checked(&self) -> Result<BTreeSet<String>, ProcessorError> {
        refusal::check(&self.app, &self.options)?;
        let mut names = BTreeSet::new();
        for (name, _) in &self.jobs {
            refusal::check_job(&self.app, name)?;
            if !names.insert(name.to_string()) {
                return Err(ProcessorError::Twice(name.to_string()));
            }
        }
        if names.is_empty() && !self.options.blocks_without_jobs {
            return Err(ProcessorError::NoJobs);
        }
        Ok(names)
    }
}

impl std::fmt::Debug for Processor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let jobs: Vec<_> = self.jobs.iter().map(|(name, _)| name).collect();
        f.debug_struct("Processor")
            .field("app", &self.app)
            .field("jobs", &jobs)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Waits for the word to stop. If nobody can give it any more, it is given.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
