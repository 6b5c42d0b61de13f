//! One run of a job's work in a task of its own: watched, cancelled, waited for, aborted.

use std::future::Future;
use std::time::Duration;

use frazil_coord::internal::write_causes;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{sleep, timeout};

use crate::panicked;

/// Whatever a job fails with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An aborted task ends where it next waits. One that has not after this long does not wait.
pub(super) const ABORT_PATIENCE: Duration = Duration::from_secs(1);

/// Work that runs.
#[derive(Debug)]
pub(super) struct Attempt {
    task: JoinHandle<Result<(), BoxError>>,
    cancel: watch::Sender<bool>,
}

/// How work ended that nobody had asked to stop, or why and how it was stopped.
#[derive(Debug)]
pub(super) enum Ended<R> {
    /// It returned.
    Done,
    /// It returned an error or panicked, which it says.
    Failed(String),
    /// It was asked to stop, for a reason.
    Stopped(R, Stopped),
}

/// How work stopped.
#[derive(Debug)]
pub(super) enum Stopped {
    /// By itself.
    Gracefully,
    /// It was aborted.
    Aborted,
    /// It goes on although it was aborted: it blocks its thread.
    NotAtAll(UnstoppableWork),
}

/// Work that cannot be stopped.
#[derive(Debug)]
pub(super) struct UnstoppableWork(JoinHandle<Result<(), BoxError>>);

impl Attempt {
    /// Starts work. `cancel` is what the work was told to look at.
    pub(super) fn start(
        work: impl Future<Output = Result<(), BoxError>> + Send + 'static,
        cancel: watch::Sender<bool>,
    ) -> Self {
        Self { task: tokio::spawn(work), cancel }
    }

    /// Waits for the end of the work, or for a reason to stop it. Then it is cancelled, has
    /// `drain` to end, and is aborted after that or when `last` comes, whichever is first.
    /// `cancelling` is called when it is cancelled.
    pub(super) async fn watch<R>(
        mut self,
        stop: impl Future<Output = R>,
        cancelling: impl FnOnce(&R),
        drain: Duration,
        last: impl Future<Output = ()>,
    ) -> Ended<R> {
        let reason = tokio::select! {
            biased;
            ended = &mut self.task => return judged(ended),
            reason = stop => reason,
        };
        cancelling(&reason);
        // It may be over, and then nobody listens.
        let _ = self.cancel.send(true);
        tokio::select! {
            biased;
            // An error is how many say that they were cancelled.
            _ = &mut self.task => return Ended::Stopped(reason, Stopped::Gracefully),
            () = sleep(drain) => {}
            () = last => {}
        }
        self.task.abort();
        let stopped = match timeout(ABORT_PATIENCE, &mut self.task).await {
            Ok(_) => Stopped::Aborted,
            Err(_) => Stopped::NotAtAll(UnstoppableWork(self.task)),
        };
        Ended::Stopped(reason, stopped)
    }
}

impl UnstoppableWork {
    /// Waits until it has ended after all.
    pub(super) async fn end(self) {
        let _ = self.0.await;
    }
}

fn judged<R>(ended: Result<Result<(), BoxError>, JoinError>) -> Ended<R> {
    match ended {
        Ok(Ok(())) => Ended::Done,
        Ok(Err(error)) => {
            let mut text = error.to_string();
            // A string takes whatever is written.
            let _ = write_causes(&mut text, &*error);
            Ended::Failed(text)
        }
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Ended::Failed(format!("it panicked: {}", panicked::words(panic.as_ref()))),
            // Only the runtime's own end cancels it.
            Err(error) => Ended::Failed(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests;
