//! The callbacks of a candidate.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use super::info::LeaderInfo;
use super::leadership::Proof;
use super::state::LeaderLoss;

type CallbackFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Called with what happened.
pub(super) type Callback<T> = Box<dyn FnMut(T) -> CallbackFuture + Send>;

/// What is called when, any number of each. What is called for one event is started in the order in
/// which it was added and runs side by side; what is called for the next event is not started
/// before all of it has returned. A callback that panics while leading resigns the leadership.
#[derive(Debug)]
pub struct Callbacks {
    pub(super) hooks: Vec<Hook>,
    pub(super) drain: Duration,
}

/// A callback and what it is called for.
pub(super) enum Hook {
    Elected(Callback<Proof>),
    Jeopardy(Callback<Proof>),
    Lost(Callback<(Proof, LeaderLoss)>),
    Changed(Callback<Option<LeaderInfo>>),
}

/// As long as container runtimes wait by default before they kill.
const DRAIN_DEFAULT: Duration = Duration::from_secs(30);

impl Default for Callbacks {
    fn default() -> Self {
        Self { hooks: Vec::new(), drain: DRAIN_DEFAULT }
    }
}

impl Callbacks {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`Elector::on_elected`](super::Elector::on_elected).
    #[must_use]
    pub fn on_elected<F>(self, callback: impl FnMut(Proof) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.with(Hook::elected(callback))
    }

    /// See [`Elector::on_jeopardy`](super::Elector::on_jeopardy).
    #[must_use]
    pub fn on_jeopardy<F>(self, callback: impl FnMut(Proof) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.with(Hook::jeopardy(callback))
    }

    /// See [`Elector::on_lost`](super::Elector::on_lost).
    #[must_use]
    pub fn on_lost<F>(self, callback: impl FnMut(Proof, LeaderLoss) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.with(Hook::lost(callback))
    }

    /// See [`Elector::on_leader_changed`](super::Elector::on_leader_changed).
    #[must_use]
    pub fn on_leader_changed<F>(
        self,
        callback: impl FnMut(Option<LeaderInfo>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.with(Hook::changed(callback))
    }

    /// How long callbacks have to return once the leadership is over, by default 30 s. Those that
    /// take longer are dropped where they are, which is logged as an error, and others may lead:
    /// a callback that waits for what never comes must not keep everybody from leading.
    #[must_use]
    pub fn drain_limit(self, drain: Duration) -> Self {
        Self { drain, ..self }
    }

    fn with(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }
}

impl Hook {
    pub(super) fn elected<F>(mut callback: impl FnMut(Proof) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::Elected(Box::new(move |proof| Box::pin(callback(proof))))
    }

    pub(super) fn jeopardy<F>(mut callback: impl FnMut(Proof) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::Jeopardy(Box::new(move |proof| Box::pin(callback(proof))))
    }

    pub(super) fn lost<F>(mut callback: impl FnMut(Proof, LeaderLoss) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::Lost(Box::new(move |(proof, loss)| Box::pin(callback(proof, loss))))
    }

    pub(super) fn changed<F>(
        mut callback: impl FnMut(Option<LeaderInfo>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::Changed(Box::new(move |leader| Box::pin(callback(leader))))
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elected(_) => "on_elected",
            Self::Jeopardy(_) => "on_jeopardy",
            Self::Lost(_) => "on_lost",
            Self::Changed(_) => "on_leader_changed",
        })
    }
}
