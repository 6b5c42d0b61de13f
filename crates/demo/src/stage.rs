//! The nodes of a demonstration, and what is done to them.

use std::time::Duration;

use frazil_coord::Copied;
use frazil_coord::internal::time::boot_time;
use frazil_election::Elections;
use frazil_election::processor::{Balance, Processor, Run, Running};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, watch};

use crate::error::Error;
use crate::journal::{Condition, Note, node_name};
use crate::plan::Plan;

/// How long the jobs may take to come to rest.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
/// How long the nodes may take to give everything back.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// How long a node is down.
const DOWN: Duration = Duration::from_millis(300);

/// Jobs of a demonstration move sooner than others.
const BALANCE: Balance = Balance::DEFAULT
    .with_window(Duration::from_millis(500))
    .with_pause(Duration::from_millis(50))
    .with_min_hold(Duration::from_millis(500));

/// The nodes, each with its own connection to the store.
pub(crate) struct Stage {
    plan: Plan,
    running: Vec<Option<Running>>,
    notes: Notes,
    /// What the journal has.
    rest: watch::Receiver<Rest>,
    /// How often a node was started.
    starts: usize,
}

/// Whether the jobs have come to rest, as the journal has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// How many starts of nodes it knows of.
    pub(crate) starts: usize,
    /// Whether all jobs run, evenly.
    pub(crate) is_settled: bool,
}

/// Where notes go, with the boot time that they are of.
pub(crate) type Notes = mpsc::UnboundedSender<(Note, Duration)>;

impl Stage {
    pub(crate) fn new(plan: Plan, notes: Notes, rest: watch::Receiver<Rest>) -> Self {
        let running = (0..plan.nodes).map(|_| None).collect();
        Self { plan, running, notes, rest, starts: 0 }
    }

    /// Starts all nodes and waits until the jobs are where they belong.
    pub(crate) async fn open(&mut self) -> Result<(), Error> {
        self.note(Note::Phase("start".to_owned()));
        for node in 0..self.running.len() {
            self.start(node).await?;
        }
        self.settle().await;
        Ok(())
    }

    /// Restarts one node after the other.
    pub(crate) async fn roll(&mut self) -> Result<(), Error> {
        for node in 0..self.running.len() {
            tokio::time::sleep(self.plan.rest).await;
            self.note(Note::Phase(format!("restart {}", node_name(node))));
            self.stop(node).await;
            tokio::time::sleep(DOWN).await;
            self.start(node).await?;
            self.settle().await;
        }
        Ok(())
    }

    /// Stops all nodes at once, so that nobody has to wait for their leaderships to lapse.
    pub(crate) async fn close(mut self) {
        let all = self.running.iter_mut().filter_map(Option::take).map(Running::stop);
        let all: Vec<_> = all.map(tokio::spawn).collect();
        let closed = async {
            for one in all {
                // A node that panicked has told so itself.
                let _ = one.await;
            }
        };
        // A store that is away keeps nobody from ending.
        let _ = tokio::time::timeout(CLOSE_LIMIT, closed).await;
    }

    async fn start(&mut self, node: usize) -> Result<(), Error> {
        let Plan { url, namespace, app, jobs, .. } = &self.plan;
        let store = frazil_coord::open(url, namespace, Copied::Refuse).await?;
        let mut processor = Processor::new(Elections::new(store), app, node_name(node));
        for job in 0..*jobs {
            processor = processor.job(job_name(job), work);
        }
        let running = processor.balance(Some(BALANCE)).start()?;
        let mut events = running.events();
        let notes = self.notes.clone();
        // Ends with the processor.
        tokio::spawn(async move {
            loop {
                match events.recv().await {
                    Ok(event) => {
                        let (job, token, step) = (event.job, event.token, event.step);
                        // When the demonstration is over nobody listens.
                        let _ = notes.send((Note::Job { node, job, token, step }, event.at));
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        });
        self.running[node] = Some(running);
        self.starts += 1;
        self.note(Note::Node { node, condition: Condition::Up });
        Ok(())
    }

    async fn stop(&mut self, node: usize) {
        self.note(Note::Node { node, condition: Condition::Stopping });
        if let Some(running) = self.running[node].take() {
            running.stop().await;
        }
        self.note(Note::Node { node, condition: Condition::Down });
    }

    async fn settle(&mut self) {
        let wanted = Rest { starts: self.starts, is_settled: true };
        let settled = self.rest.wait_for(|rest| *rest == wanted);
        let in_time = tokio::time::timeout(SETTLE_LIMIT, settled).await.is_ok();
        self.note(if in_time { Note::Settled } else { Note::Unsettled });
    }

    fn note(&self, note: Note) {
        // When the demonstration is over nobody listens.
        let _ = self.notes.send((note, boot_time()));
    }
}

pub(crate) fn job_name(index: usize) -> String {
    format!("job-{:02}", index + 1)
}

/// The work of every job: to be there.
async fn work(run: Run) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    run.cancelled().await;
    Ok(())
}
