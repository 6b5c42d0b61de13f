//! The task of one job: it campaigns, leads, runs the work, stops it, gives it back. It waits for
//! no other job and no other job waits for it.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::Token;
use frazil_coord::internal::time::boot_time;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::attempt::{Attempt, Ended, Stopped};
use super::node::Node;
use super::restart::{AfterFailure, Failures, WhenDone};
use super::run::{Run, Work};
use super::status::{JobState, Step, StopReason};
use super::stopped;
use crate::{Candidate, Leadership, Pace};

/// One job of a processor.
pub(super) struct Job {
    pub(super) name: Arc<str>,
    pub(super) work: Work,
    pub(super) node: Arc<Node>,
    pub(super) candidate: Candidate,
    /// The processor ends.
    pub(super) stop: watch::Receiver<bool>,
    /// Whether this node is one of the nodes.
    pub(super) joined: watch::Receiver<bool>,
    /// The leadership that is to be given to another node.
    pub(super) orders: watch::Receiver<Option<Token>>,
}

/// What follows a leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Another campaign, after a while.
    Campaign(Duration, JobState),
    /// Nothing.
    End,
}

/// One leadership of a job, at work.
struct Tenure<'a> {
    job: &'a mut Job,
    leadership: &'a Leadership,
    /// When it is given up of one's own accord.
    voluntary: Option<Instant>,
    attempts: u32,
}

/// After the store refused something that only an operator can repair.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// Whoever gave a job away lets others go first for this long: many ranks, and the way of the news.
const STEP_BACK: Duration = Duration::from_millis(200);

impl Job {
    /// Runs until the processor ends, or until the job is done for good.
    pub(super) async fn run(mut self) {
        let mut stop = self.stop.clone();
        let mut failures = Failures::default();
        let delay = self.node.options.start_delay.as_ref().map(|delay| delay.0(&self.name));
        let mut next = Next::Campaign(delay.unwrap_or_default(), JobState::Delayed);
        let ready = self.settled();
        tokio::select! {
            biased;
            () = stopped(&mut stop) => next = Next::End,
            () = ready => {}
        }
        while let Next::Campaign(after, state) = next {
            self.tell(None, state);
            let campaign = async {
                sleep(after).await;
                self.tell(None, JobState::Campaigning);
                self.candidate.campaign_among(self.pace()).await
            };
            let won = tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                won = campaign => won,
            };
            next = match won {
                Ok(leadership) => self.lead(leadership, &mut failures).await,
                Err(error) => {
                    tracing::error!(job = %self.name, error = %format_args!("{error:#}"), "the store refuses this job");
                    self.node.reporter.failed(&self.name, None, &format!("{error:#}"));
                    Next::Campaign(REFUSED_PAUSE, JobState::Refused)
                }
            };
        }
        self.node.quota.give_up(&self.name);
        self.tell(None, JobState::Ended);
    }

    /// Waits until this node has been one of the nodes for long enough to have seen the others. If
    /// others have jobs, they have been seen.
    fn settled(&self) -> impl Future<Output = ()> + use<> {
        let (mut joined, node) = (self.joined.clone(), self.node.clone());
        async move {
            // If nobody can say so any more, the processor ends.
            let _ = joined.wait_for(|joined| *joined).await;
            if !node.sees_others_at_work() {
                sleep(node.options.settle).await;
            }
        }
    }

    fn pace(&self) -> Pace {
        let (node, name) = (self.node.clone(), self.name.clone());
        Arc::new(move |view| node.pace(&name, view))
    }

    /// Does what there is to do under one leadership, and gives it back.
    async fn lead(&mut self, leadership: Leadership, failures: &mut Failures) -> Next {
        let (token, node, name) = (leadership.token(), self.node.clone(), self.name.clone());
        node.reporter.step(&name, token, Step::Elected);
        if !node.quota.begin(&name, boot_time()) {
            release(&node, &name, leadership).await;
            return Next::Campaign(STEP_BACK, JobState::Campaigning);
        }
        let timeout = node.options.voluntary_timeout.as_ref();
        let voluntary = timeout.map(|timeout| Instant::now() + timeout.0(&name));
        let mut tenure = Tenure { job: self, leadership: &leadership, voluntary, attempts: 0 };
        let next = tenure.work(failures).await;
        // Before the release: others of this node are asked as soon as the store tells of it.
        node.quota.end(&name);
        release(&node, &name, leadership).await;
        next
    }

    fn tell(&self, token: Option<Token>, state: JobState) {
        self.node.reporter.state(&self.name, token, state);
    }
}

impl Tenure<'_> {
    /// Runs the work, again and again as the policies say, until the leadership is to be given
    /// back. By then the work has stopped.
    async fn work(&mut self, failures: &mut Failures) -> Next {
        loop {
            // The answer to a claim may have been long on its way.
            if self.leadership.ensure(self.job.node.options.stop_budget()).is_err() {
                return next_after(StopReason::Expiring);
            }
            let started = boot_time();
            let pause = match self.attempt().await {
                Ended::Stopped(why, stopped) => {
                    self.has_stopped(stopped).await;
                    return next_after(why);
                }
                Ended::Done => {
                    self.step(Step::Done);
                    match self.job.node.options.when_done {
                        WhenDone::Keep => None,
                        WhenDone::Release => return Next::End,
                        WhenDone::Again(pause) => Some((pause, JobState::Done)),
                    }
                }
                Ended::Failed(error) => {
                    let ran = boot_time().saturating_sub(started);
                    match self.failed(&error, failures.failed(&self.job.node.options.restart, ran))
                    {
                        Ok(pause) => Some((pause, JobState::Pausing)),
                        Err(next) => return next,
                    }
                }
            };
            if let Some(why) = self.idle(pause).await {
                return next_after(why);
            }
        }
    }

    /// Starts the work and watches it to its end.
    async fn attempt(&mut self) -> Ended<StopReason> {
        let (cancel, cancelled) = watch::channel(false);
        let name = self.job.name.clone();
        let run = Run::new(name.clone(), self.leadership.proof(), self.attempts, cancelled);
        self.attempts = self.attempts.saturating_add(1);
        let work = self.job.work.clone();
        // Inside, so that a panic before the first wait is caught too.
        let attempt = Attempt::start(async move { work(run).await }, cancel);
        self.tell(JobState::Running);
        self.step(Step::Started);
        let options = self.job.node.options.clone();
        let (node, leadership, token) =
            (self.job.node.clone(), self.leadership, self.leadership.token());
        let cancelling = |why: &StopReason| {
            node.reporter.state(&name, Some(token), JobState::Stopping);
            node.reporter.step(&name, token, Step::Cancelled(*why));
        };
        let last = leadership.expiring(options.abort_margin());
        attempt.watch(self.reason(), cancelling, options.drain, last).await
    }

    /// Leads without running anything, for a while or for good, until there is a reason to stop.
    async fn idle(&mut self, pause: Option<(Duration, JobState)>) -> Option<StopReason> {
        let (pause, state) = pause.map_or((None, JobState::Done), |(p, state)| (Some(p), state));
        self.tell(state);
        let over = async {
            match pause {
                Some(pause) => sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            why = self.reason() => Some(why),
            () = over => None,
        }
    }

    /// Waits for a reason to stop. None of them waits for the store to answer anything.
    async fn reason(&mut self) -> StopReason {
        let token = self.leadership.token();
        let Job { node, name, stop, orders, .. } = &mut *self.job;
        tokio::select! {
            biased;
            () = stopped(stop) => StopReason::Shutdown,
            () = self.leadership.expiring(node.options.stop_budget()) => StopReason::Expiring,
            // An order about an earlier leadership is stale.
            Ok(_) = orders.wait_for(|order| *order == Some(token)) => StopReason::Balance,
            () = voluntary(node, name, &mut self.voluntary) => StopReason::Timeout,
        }
    }

    /// Makes sure that the work has stopped.
    async fn has_stopped(&self, how: Stopped) {
        let aborted = !matches!(how, Stopped::Gracefully);
        if aborted {
            tracing::warn!(job = %self.job.name, "the work did not stop in time and was aborted");
        }
        if let Stopped::NotAtAll(stuck) = how {
            tracing::error!(
                job = %self.job.name,
                "the work blocks its thread and cannot be aborted: the leadership is kept"
            );
            self.tell(JobState::Stuck);
            stuck.end().await;
        }
        self.step(Step::Stopped { aborted });
    }

    /// Tells of a failure; gives the pause until the next start, or what follows.
    fn failed(&self, error: &str, next: AfterFailure) -> Result<Duration, Next> {
        let (reporter, name, token) =
            (&self.job.node.reporter, &self.job.name, self.leadership.token());
        tracing::warn!(job = %name, error, ?next, "a job failed");
        reporter.failed(name, Some(token), error);
        self.step(Step::Failed(error.to_owned()));
        match next {
            AfterFailure::Restart(pause) => {
                reporter.restarted(name, token);
                Ok(pause)
            }
            AfterFailure::LeaveToOthers(hold_off) => {
                Err(Next::Campaign(hold_off, JobState::HeldOff))
            }
        }
    }

    fn tell(&self, state: JobState) {
        self.job.tell(Some(self.leadership.token()), state);
    }

    fn step(&self, step: Step) {
        self.job.node.reporter.step(&self.job.name, self.leadership.token(), step);
    }
}

const fn next_after(why: StopReason) -> Next {
    match why {
        StopReason::Shutdown => Next::End,
        StopReason::Expiring => Next::Campaign(Duration::ZERO, JobState::Campaigning),
        StopReason::Timeout | StopReason::Balance => {
            Next::Campaign(STEP_BACK, JobState::Campaigning)
        }
    }
}

/// Waits until the job is to be given up of one's own accord: when its time is over, and a node
/// has too few jobs or that does not matter.
async fn voluntary(node: &Node, name: &str, at: &mut Option<Instant>) {
    let (Some(at), Some(timeout)) = (at, &node.options.voluntary_timeout) else {
        return std::future::pending().await;
    };
    let views = node.elections.view();
    loop {
        sleep_until(*at).await;
        let is_wanted = || node.quota.leave(name, &node.parsed(&views.borrow()).cluster);
        if node.options.strict || is_wanted() {
            return;
        }
        *at = Instant::now() + timeout.0(name);
    }
}

/// Gives a leadership back, if there is still something to give.
async fn release(node: &Node, name: &str, leadership: Leadership) {
    let token = leadership.token();
    // Without time to wait for the store it is told in the background, as it is when this is
    // dropped.
    if leadership.ensure(node.options.stop_budget()).is_err() {
        node.reporter.step(name, token, Step::Lost);
        return;
    }
    match leadership.resign().await {
        Ok(()) => node.reporter.step(name, token, Step::Released),
        Err(error) => {
            tracing::warn!(job = name, error = %format_args!("{error:#}"), "the next leader may have to wait for the TTL");
            node.reporter.step(name, token, Step::Lost);
        }
    }
}
