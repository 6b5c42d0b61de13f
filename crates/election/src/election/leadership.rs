//! The right to lead, and the proof of it that work is handed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::{Error, Token, UnixMs};
use tokio::sync::oneshot;

use super::state::LeaderLoss;
use super::term::Term;

/// The right to lead, for as long as the store keeps being told so. Dropping it resigns in the
/// background; [`resign`](Self::resign) waits for that.
#[derive(Debug)]
pub struct Leadership {
    proof: Proof,
    /// To the task that renews. Dropping it resigns too.
    resign: Option<oneshot::Sender<Resignation>>,
}

/// That somebody leads, for work that must stop when it is over. It can be cloned, asked from any
/// thread, and kept for longer than the leadership.
#[derive(Clone, Debug)]
pub struct Proof {
    term: Arc<Term>,
}

/// The leadership is over, or too near its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotLeader {
    /// Why it is over; `None` if it is only too near its end.
    pub loss: Option<LeaderLoss>,
}

/// How to resign.
#[derive(Debug)]
pub(super) struct Resignation {
    /// The highest time that was used, where times are.
    pub(super) last: Option<UnixMs>,
    pub(super) done: oneshot::Sender<Result<(), Error>>,
}

impl Leadership {
    pub(super) const fn new(term: Arc<Term>, resign: oneshot::Sender<Resignation>) -> Self {
        Self { proof: Proof { term }, resign: Some(resign) }
    }

    /// A proof of it.
    #[must_use]
    pub fn proof(&self) -> Proof {
        self.proof.clone()
    }

    /// The fencing token: larger than that of every leader before. What is written should say it,
    /// and what is written to should refuse a lower one.
    #[must_use]
    pub fn token(&self) -> Token {
        self.proof.token()
    }

    /// Whether it lasts, by the time that it is now.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.proof.is_leader()
    }

    /// How long it lasts without another renewal; `None` where no time ends it.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.proof.remaining()
    }

    /// The token, if it lasts for longer than a margin.
    ///
    /// # Errors
    /// If it does not.
    pub fn ensure(&self, margin: Duration) -> Result<Token, NotLeader> {
        self.proof.ensure(margin)
    }

    /// Waits until it is over.
    pub async fn cancelled(&self) {
        self.proof.cancelled().await;
    }

    /// Waits until it is over, or a renewal is so late that no more than a margin is left: time to
    /// stop what must have stopped by then.
    pub async fn expiring(&self, margin: Duration) {
        self.proof.expiring(margin).await;
    }

    /// Why it is over, once it is.
    #[must_use]
    pub fn loss(&self) -> Option<LeaderLoss> {
        self.proof.loss()
    }

    /// Only times after this may be used, where the settings gave a window.
    #[must_use]
    pub fn floor(&self) -> UnixMs {
        self.proof.floor()
    }

    /// No time after this may be used yet, where the settings gave a window.
    #[must_use]
    pub fn horizon(&self) -> UnixMs {
        self.proof.horizon()
    }

    /// Leads no more from here on, and nobody else does yet: proofs say so at once, and the slot is
    /// kept in the store until this is [resigned](Self::resign) or dropped. So what stops when its
    /// proof is [cancelled](Proof::cancelled) can be waited for before anybody else starts.
    pub fn step_down(&self) {
        self.proof.term.end(LeaderLoss::Released);
    }

    /// Leads no more from here on, and waits until the store knows, so that the next leader need
    /// not wait.
    ///
    /// # Errors
    /// If the store did not say that it knows. It goes on being told in the background; the next
    /// leader may have to wait until the time to live is over.
    pub async fn resign(self) -> Result<(), Error> {
        self.give_up(None).await
    }

    /// As [`resign`](Self::resign), where times were used: the next leader starts right above
    /// `last`. None is used after this is called.
    ///
    /// # Errors
    /// As for `resign`.
    pub async fn resign_at(self, last: UnixMs) -> Result<(), Error> {
        self.give_up(Some(last)).await
    }

    async fn give_up(mut self, last: Option<UnixMs>) -> Result<(), Error> {
        self.step_down();
        let (done, told) = oneshot::channel();
        if let Some(resign) = self.resign.take() {
            // If the task is gone, the leadership was lost before.
            let _ = resign.send(Resignation { last, done });
        }
        told.await.unwrap_or(Ok(()))
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        // Not when the task gets to it: now.
        self.step_down();
    }
}

impl Proof {
    /// The election's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.term.name
    }

    /// See [`Leadership::token`].
    #[must_use]
    pub fn token(&self) -> Token {
        self.term.token
    }

    /// See [`Leadership::is_leader`].
    #[must_use]
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.term.lasts()
    }

    /// See [`Leadership::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.term.remaining()
    }

    /// See [`Leadership::ensure`].
    ///
    /// # Errors
    /// If it is over, or too near its end.
    pub fn ensure(&self, margin: Duration) -> Result<Token, NotLeader> {
        if !self.is_leader() {
            return Err(NotLeader { loss: self.loss() });
        }
        match self.remaining() {
            Some(left) if left <= margin => Err(NotLeader { loss: self.loss() }),
            Some(_) | None => Ok(self.token()),
        }
    }

    /// See [`Leadership::cancelled`].
    pub async fn cancelled(&self) {
        self.term.expiring(Duration::ZERO).await;
    }

    /// See [`Leadership::expiring`].
    pub async fn expiring(&self, margin: Duration) {
        self.term.expiring(margin).await;
    }

    /// See [`Leadership::loss`].
    #[must_use]
    pub fn loss(&self) -> Option<LeaderLoss> {
        self.term.loss()
    }

    /// See [`Leadership::floor`].
    #[must_use]
    pub fn floor(&self) -> UnixMs {
        self.term.floor
    }

    /// See [`Leadership::horizon`].
    #[must_use]
    pub fn horizon(&self) -> UnixMs {
        self.term.horizon()
    }
}

impl fmt::Display for NotLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.loss {
            Some(loss) => write!(f, "the leadership is over: {loss}"),
            None => f.write_str("the leadership is about to end unless it is renewed"),
        }
    }
}

impl std::error::Error for NotLeader {}
