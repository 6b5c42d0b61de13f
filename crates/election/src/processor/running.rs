//! A processor at work: it owns the tasks, and ends them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::Nonce;
use tokio::sync::{broadcast, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::attempt::ABORT_PATIENCE;
use super::job::Job;
use super::node::Node;
use super::rebalance::HandoverOrders;
use super::status::{Event, JobState, JobStatus, Status, StatusReporter};
use super::{Processor, ProcessorError, membership, rebalance, stopped};

/// A processor at work. Dropping it stops it in the background; [`stop`](Self::stop) waits.
#[derive(Debug)]
pub struct Running {
    reporter: StatusReporter,
    stop: watch::Sender<bool>,
    task: JoinHandle<Report>,
}

/// How a processor ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Jobs whose work could not be stopped, or that are still being given back. Their leaderships
    /// lapse with this process.
    pub unfinished: Vec<String>,
}

/// A store that does not answer keeps nobody from ending for longer than this.
const RELEASE_PATIENCE: Duration = Duration::from_secs(6);

/// The tasks of a processor.
struct Tasks {
    node: Arc<Node>,
    jobs: JoinSet<()>,
    /// Ends the jobs and the balancing; the membership has ended before.
    stop_jobs: watch::Sender<bool>,
    stop_membership: watch::Sender<bool>,
    membership: JoinHandle<()>,
    balancing: Option<JoinHandle<()>>,
}

impl Running {
    pub(super) fn start(
        processor: Processor,
        names: BTreeSet<String>,
    ) -> Result<Self, ProcessorError> {
        let mark = Nonce::mint().map_err(|error| ProcessorError::NoRandomBits(error.into()))?;
        let Processor { elections, app, jobs, options } = processor;
        let reporter = StatusReporter::new(Status {
            app: app.clone(),
            instance: options.settings.instance.clone(),
            node: mark.to_string(),
            member: None,
            trouble: None,
            jobs: names.iter().map(|name| JobStatus::new(name)).collect(),
        });
        let node = Node::new((app, mark.to_string()), elections, options, names, reporter.clone());
        let tasks = Tasks::start(Arc::new(node), jobs);
        let (stop, asked) = watch::channel(false);
        let task = tokio::spawn(tasks.run(asked));
        Ok(Self { reporter, stop, task })
    }

    /// What the jobs do, now and whenever that changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.reporter.status()
    }

    /// Every step of every job from now on, with its token.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.reporter.events()
    }

    /// Stops every job and gives it back as soon as it has stopped; waits until all are.
    pub async fn stop(self) -> Report {
        self.stop.send_replace(true);
        self.task.await.unwrap_or_default()
    }
}

impl Tasks {
    fn start(node: Arc<Node>, works: Vec<(Arc<str>, super::run::Work)>) -> Self {
        let (stop_jobs, stop_membership) = (watch::Sender::new(false), watch::Sender::new(false));
        let joined = watch::Sender::new(false);
        let (mut jobs, mut orders) = (JoinSet::new(), HandoverOrders::new());
        for (name, work) in works {
            let (order, ordered) = watch::channel(None);
            orders.insert(name.to_string(), order);
            let settings = node.job_settings();
            let candidate = node.elections.candidate(&node.job_slot(&name), settings);
            jobs.spawn(
                Job {
                    name,
                    work,
                    node: node.clone(),
                    candidate: candidate.expect("the names and times were checked"),
                    stop: stop_jobs.subscribe(),
                    joined: joined.subscribe(),
                    orders: ordered,
                }
                .run(),
            );
        }
        let membership =
            tokio::spawn(membership::keep(node.clone(), stop_membership.subscribe(), joined));
        let balancing = node.options.balance.map(|balance| {
            tokio::spawn(rebalance::run(node.clone(), balance, orders, stop_jobs.subscribe()))
        });
        Self { node, jobs, stop_jobs, stop_membership, membership, balancing }
    }

    async fn run(mut self, mut asked: watch::Receiver<bool>) -> Report {
        stopped(&mut asked).await;
        // The others know first, so that nobody waits for this node to take its jobs back.
        self.node.drain();
        self.stop_membership.send_replace(true);
        let _ = self.membership.await;
        self.stop_jobs.send_replace(true);
        if let Some(balancing) = self.balancing {
            let _ = balancing.await;
        }
        let patience = self.node.options.drain + ABORT_PATIENCE + RELEASE_PATIENCE;
        let all = async { while self.jobs.join_next().await.is_some() {} };
        let _ = timeout(patience, all).await;
        // What runs still keeps its leadership for as long as the process lives.
        self.jobs.detach_all();
        let status = self.node.reporter.status().borrow().clone();
        let unfinished = status.jobs.into_iter().filter(|job| job.state != JobState::Ended);
        Report { unfinished: unfinished.map(|job| job.name).collect() }
    }
}
