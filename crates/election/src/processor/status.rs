//! The status of a processor's jobs, for people and measurements.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_coord::{Token, UnixMs};
use serde::Serialize;
use tokio::sync::{broadcast, watch};

/// What a processor is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The application.
    pub app: String,
    /// What people call this node.
    pub instance: String,
    /// What this processor is recognised by; new at every start.
    pub node: String,
    /// Its number among the nodes, while it is one of them.
    pub member: Option<u32>,
    /// Why it is none of them yet, if the store said so.
    pub trouble: Option<String>,
    /// Its jobs, by name.
    pub jobs: Vec<JobStatus>,
}

/// What one job is doing on this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct JobStatus {
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: JobState,
    /// Of its last leadership on this node.
    pub token: Option<Token>,
    /// Since when it does that, in Unix milliseconds.
    pub since_ms: UnixMs,
    /// How often it was started again after a failure, since the processor started.
    pub restarts: u64,
    /// Its last failure.
    pub last_error: Option<String>,
}

/// What a job can be doing on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobState {
    /// It does not campaign yet: a start delay.
    Delayed,
    /// It campaigns.
    Campaigning,
    /// It leads and runs.
    Running,
    /// It leads, failed, and is started again soon.
    Pausing,
    /// It leads and is done.
    Done,
    /// It was asked to stop and has not yet.
    Stopping,
    /// It was aborted and runs still: it blocks its thread. The leadership is kept.
    Stuck,
    /// It failed too often here and is left to others for a while.
    HeldOff,
    /// The store refuses: see the error. It is tried again.
    Refused,
    /// It does not campaign any more: the processor ends, or it is done.
    Ended,
}

/// One step of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The job.
    pub job: String,
    /// The leadership that it happened under.
    pub token: Token,
    /// What happened.
    pub step: Step,
    /// When, in boot time.
    pub at: Duration,
}

/// The steps of a job, in their order under one leadership.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// This node was elected.
    Elected,
    /// The work was started.
    Started,
    /// The work was asked to stop.
    Cancelled(StopReason),
    /// The work has stopped. `aborted`: by force.
    Stopped {
        /// It had to be aborted.
        aborted: bool,
    },
    /// The work failed, which it says.
    Failed(String),
    /// The work returned.
    Done,
    /// The leadership was given back; a successor can have it.
    Released,
    /// The leadership was lost.
    Lost,
}

/// Why work is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The processor ends.
    Shutdown,
    /// The leadership is over, or will be before work could be stopped later.
    Expiring,
    /// Its voluntary time-out.
    Timeout,
    /// Another node has too few jobs.
    Balance,
}

/// How many events are kept for those who listen slowly.
const EVENTS_KEPT: usize = 4096;

/// Where jobs tell what they do. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct StatusReporter {
    status: Arc<watch::Sender<Status>>,
    events: broadcast::Sender<Event>,
}

impl StatusReporter {
    pub(super) fn new(status: Status) -> Self {
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        Self { status: Arc::new(watch::Sender::new(status)), events }
    }

    pub(super) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(super) fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    pub(super) fn member(&self, member: Option<u32>) {
        self.status
            .send_if_modified(|status| std::mem::replace(&mut status.member, member) != member);
    }

    pub(super) fn trouble(&self, trouble: Option<String>) {
        self.status.send_if_modified(|status| {
            let before = std::mem::replace(&mut status.trouble, trouble);
            before != status.trouble
        });
    }

    /// Tells of a step under a leadership.
    pub(super) fn step(&self, job: &str, token: Token, step: Step) {
        tracing::debug!(job, %token, ?step, "job");
        let event = Event { job: job.to_owned(), token, step, at: boot_time() };
        // Nobody needs to listen.
        let _ = self.events.send(event);
    }

    /// Tells what a job does. What is told of an older leadership than the last is dropped.
    pub(super) fn state(&self, job: &str, token: Option<Token>, state: JobState) {
        self.job(job, token, |status| {
            if status.state != state {
                (status.state, status.since_ms) = (state, unix_ms());
            }
        });
    }

    /// Tells of a failure.
    pub(super) fn failed(&self, job: &str, token: Option<Token>, error: &str) {
        self.job(job, token, |status| status.last_error = Some(error.to_owned()));
    }

    pub(super) fn restarted(&self, job: &str, token: Token) {
        self.job(job, Some(token), |status| status.restarts += 1);
    }

    fn job(&self, job: &str, token: Option<Token>, change: impl FnOnce(&mut JobStatus)) {
        self.status.send_if_modified(|status| {
            let Some(known) = status.jobs.iter_mut().find(|known| known.name == job) else {
                return false;
            };
            let is_stale = token.zip(known.token).is_some_and(|(told, known)| told < known);
            let before = known.clone();
            if !is_stale {
                known.token = token.or(known.token);
                change(known);
            }
            *known != before
        });
    }
}

impl Status {
    /// A job of it.
    #[must_use]
    pub fn job(&self, name: &str) -> Option<&JobStatus> {
        self.jobs.iter().find(|job| job.name == name)
    }

    /// How many jobs this node has the leadership of.
    #[must_use]
    pub fn led(&self) -> usize {
        self.jobs.iter().filter(|job| job.state.leads()).count()
    }
}

impl JobStatus {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: JobState::Delayed,
            token: None,
            since_ms: unix_ms(),
            restarts: 0,
            last_error: None,
        }
    }
}

impl JobState {
    /// Whether this node has the leadership then.
    #[must_use]
    pub const fn leads(self) -> bool {
        matches!(self, Self::Running | Self::Pausing | Self::Done | Self::Stopping | Self::Stuck)
    }

    /// The state in a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::Campaigning => "campaigning",
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Done => "done",
            Self::Stopping => "stopping",
            Self::Stuck => "stuck",
            Self::HeldOff => "held_off",
            Self::Refused => "refused",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reporter() -> StatusReporter {
        StatusReporter::new(Status {
            app: "app".into(),
            instance: "here".into(),
            node: "n".into(),
            member: None,
            trouble: None,
            jobs: vec![JobStatus::new("a"), JobStatus::new("b")],
        })
    }

    #[test]
    fn what_is_told_of_an_older_leadership_is_dropped() {
        let reporter = reporter();
        reporter.state("a", Some(Token(8)), JobState::Running);
        reporter.state("a", Some(Token(7)), JobState::Stopping);
        reporter.failed("a", Some(Token(7)), "late");
        let status = reporter.status().borrow().job("a").cloned().unwrap();
        assert_eq!((status.state, status.token), (JobState::Running, Some(Token(8))));
        assert_eq!(status.last_error, None);
        reporter.state("a", Some(Token(9)), JobState::Stopping);
        assert_eq!(reporter.status().borrow().job("a").unwrap().token, Some(Token(9)));
    }

    #[test]
    fn each_job_is_told_of_apart_and_those_that_lead_are_counted() {
        let reporter = reporter();
        reporter.state("a", Some(Token(1)), JobState::Pausing);
        reporter.restarted("a", Token(1));
        reporter.state("b", None, JobState::Campaigning);
        let status = reporter.status().borrow().clone();
        assert_eq!(status.led(), 1);
        assert_eq!((status.jobs[0].restarts, status.jobs[1].restarts), (1, 0));
    }

    #[test]
    fn every_word_is_the_one_in_json() {
        for state in [JobState::Delayed, JobState::HeldOff, JobState::Stuck, JobState::Ended] {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("{:?}", state.word()));
        }
    }
}
