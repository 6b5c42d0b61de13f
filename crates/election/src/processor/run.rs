//! The context of work that is run.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::Token;
use tokio::sync::watch;

use super::attempt::BoxError;
use crate::{NotLeader, Proof};

/// One run of a job: its name, the proof that this node leads it, and the word to stop.
#[derive(Clone, Debug)]
pub struct Run {
    name: Arc<str>,
    proof: Proof,
    attempt: u32,
    cancelled: watch::Receiver<bool>,
}

/// Work, to be run again and again.
pub(super) type Work =
    Arc<dyn Fn(Run) -> Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>> + Send + Sync>;

impl Run {
    pub(super) const fn new(
        name: Arc<str>,
        proof: Proof,
        attempt: u32,
        cancelled: watch::Receiver<bool>,
    ) -> Self {
        Self { name, proof, attempt, cancelled }
    }

    /// The job's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// That this node leads the job; for other tasks and threads that work for it.
    #[must_use]
    pub const fn proof(&self) -> &Proof {
        &self.proof
    }

    /// The fencing token. What the work writes should say it, and what it writes to should refuse
    /// a lower one: see `fence`.
    #[must_use]
    pub fn token(&self) -> Token {
        self.proof.token()
    }

    /// How often it was started before under this leadership.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether this node leads the job, by the time that it is now.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.proof.is_leader()
    }

    /// The token, if the leadership lasts for longer than a margin.
    ///
    /// # Errors
    /// If it does not.
    pub fn ensure(&self, margin: Duration) -> Result<Token, NotLeader> {
        self.proof.ensure(margin)
    }

    /// Waits until the work is to stop. What it returns then is not looked at; if it does not
    /// return in time, it is aborted.
    pub async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        // If nobody can say so any more, it is.
        let _ = cancelled.wait_for(|cancelled| *cancelled).await;
    }

    /// Whether the work is to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow() || self.cancelled.has_changed().is_err()
    }
}
