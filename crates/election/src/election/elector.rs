//! Campaigning for ever, with callbacks for what becomes of it.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use frazil_coord::Error;
use futures_util::FutureExt;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::candidate::Candidate;
use super::info::LeaderInfo;
use super::leadership::{Leadership, Proof};
use super::observer::Observer;
use super::state::{LeaderLoss, State};
use crate::panicked;

type Done = Pin<Box<dyn Future<Output = ()> + Send>>;
type Callback<T> = Box<dyn FnMut(T) -> Done + Send>;

/// What is called when, one after the other: the next is not called before the one before has
/// returned. A callback that panics while leading resigns the leadership.
#[derive(Default)]
pub struct Callbacks {
    elected: Option<Callback<Proof>>,
    jeopardy: Option<Callback<Proof>>,
    lost: Option<Callback<(Proof, LeaderLoss)>>,
    changed: Option<Callback<Option<LeaderInfo>>>,
}

impl Callbacks {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Called when elected. It should return soon, and what it starts should end when the
    /// [proof](Proof::cancelled) says so.
    #[must_use]
    pub fn on_elected<F>(mut self, mut callback: impl FnMut(Proof) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.elected = Some(Box::new(move |proof| Box::pin(callback(proof))));
        self
    }

    /// Called when a renewal failed while leading.
    #[must_use]
    pub fn on_jeopardy<F>(mut self, mut callback: impl FnMut(Proof) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.jeopardy = Some(Box::new(move |proof| Box::pin(callback(proof))));
        self
    }

    /// Called after leading, exactly once for each time that `on_elected` was. When the elector is
    /// stopped it is called before the store is told, so that the next leader starts after what
    /// this one stops here.
    #[must_use]
    pub fn on_lost<F>(
        mut self,
        mut callback: impl FnMut(Proof, LeaderLoss) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.lost = Some(Box::new(move |(proof, loss)| Box::pin(callback(proof, loss))));
        self
    }

    /// Called when it is seen that somebody else leads than before, or nobody does.
    #[must_use]
    pub fn on_leader_changed<F>(
        mut self,
        mut callback: impl FnMut(Option<LeaderInfo>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.changed = Some(Box::new(move |leader| Box::pin(callback(leader))));
        self
    }
}

/// Campaigns whenever it does not lead, until it is stopped or dropped; both resign.
#[derive(Debug)]
pub struct Elector {
    candidate: Candidate,
    led: Arc<RwLock<Option<Proof>>>,
    leader: watch::Receiver<Option<LeaderInfo>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), Error>>,
}

impl Elector {
    /// Starts to campaign. Must be called inside a Tokio runtime.
    #[must_use]
    pub fn start(candidate: Candidate, callbacks: Callbacks) -> Self {
        let led = Arc::new(RwLock::new(None));
        let (stop, stopped) = oneshot::channel();
        let (publish, leader) = watch::channel(None);
        let electing = Electing {
            observer: candidate.observe(),
            candidate: candidate.clone(),
            callbacks,
            led: led.clone(),
            publish,
        };
        let task = tokio::spawn(electing.run(stopped));
        Self { candidate, led, leader, stop: Some(stop), task }
    }

    /// Whether it leads, by the time that it is now.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        let led = self.led.read().unwrap_or_else(PoisonError::into_inner);
        led.as_ref().is_some_and(Proof::is_leader)
    }

    /// The proof of its leadership, while it leads.
    #[must_use]
    pub fn proof(&self) -> Option<Proof> {
        let led = self.led.read().unwrap_or_else(PoisonError::into_inner);
        led.clone().filter(Proof::is_leader)
    }

    /// Who leads, as last seen, and whenever that changes.
    #[must_use]
    pub fn leader(&self) -> watch::Receiver<Option<LeaderInfo>> {
        self.leader.clone()
    }

    /// Where it stands, and whenever that changes.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.candidate.state()
    }

    /// Who it is.
    #[must_use]
    pub fn instance(&self) -> &str {
        self.candidate.instance()
    }

    /// Stops campaigning; if it leads, calls `on_lost` and then resigns, and waits for both.
    ///
    /// # Errors
    /// Why it had stopped campaigning before, or why the store was not told.
    pub async fn stop(mut self) -> Result<(), Error> {
        drop(self.stop.take());
        // Its callbacks' panics are caught: it ends by itself, or with the runtime.
        (&mut self.task).await.unwrap_or(Ok(()))
    }
}

/// How a leadership ended.
enum Led {
    Lost,
    Stopped,
    Panicked,
}

struct Electing {
    candidate: Candidate,
    observer: Observer,
    callbacks: Callbacks,
    led: Arc<RwLock<Option<Proof>>>,
    publish: watch::Sender<Option<LeaderInfo>>,
}

impl Electing {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) -> Result<(), Error> {
        loop {
            let candidate = self.candidate.clone();
            let mut campaign = std::pin::pin!(candidate.campaign());
            let leadership = loop {
                tokio::select! {
                    biased;
                    _ = &mut stopped => return Ok(()),
                    elected = &mut campaign => break elected?,
                    leader = self.observer.changed() => { self.leader_changed(leader).await; }
                }
            };
            let pause = match self.lead(leadership, &mut stopped).await? {
                Led::Stopped => return Ok(()),
                Led::Lost => Duration::ZERO,
                // Another shall have a chance.
                Led::Panicked => self.candidate.settings().retry,
            };
            tokio::select! {
                _ = &mut stopped => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Leads until that is over.
    async fn lead(
        &mut self,
        leadership: Leadership,
        stopped: &mut oneshot::Receiver<()>,
    ) -> Result<Led, Error> {
        let proof = leadership.proof();
        self.note(Some(proof.clone()));
        let mut fine = called(&mut self.callbacks.elected, proof.clone()).await;
        let mut state = self.candidate.state();
        let mut is_stopped = false;
        while fine && !is_stopped && leadership.is_leader() {
            tokio::select! {
                biased;
                _ = &mut *stopped => is_stopped = true,
                () = leadership.cancelled() => {}
                Ok(()) = state.changed() => {
                    let now = state.borrow_and_update().clone();
                    if now == (State::Jeopardy { token: proof.token() }) {
                        fine = called(&mut self.callbacks.jeopardy, proof.clone()).await;
                    }
                }
                leader = self.observer.changed() => fine = self.leader_changed(leader).await,
            }
        }
        let loss = leadership.loss().unwrap_or(LeaderLoss::Released);
        self.note(None);
        called(&mut self.callbacks.lost, (proof, loss)).await;
        let told = leadership.resign().await;
        match (is_stopped, fine) {
            (true, _) => told.map(|()| Led::Stopped),
            // The store goes on being told.
            (false, true) => Ok(Led::Lost),
            (false, false) => Ok(Led::Panicked),
        }
    }

    async fn leader_changed(&mut self, leader: Option<LeaderInfo>) -> bool {
        self.publish.send_replace(leader.clone());
        called(&mut self.callbacks.changed, leader).await
    }

    fn note(&self, proof: Option<Proof>) {
        *self.led.write().unwrap_or_else(PoisonError::into_inner) = proof;
    }
}

/// Calls back, if there is somebody to. `false`: it panicked.
async fn called<T>(callback: &mut Option<Callback<T>>, with: T) -> bool {
    let Some(callback) = callback else { return true };
    // A callback that panicked is called again with whatever state it left itself in.
    let calling = AssertUnwindSafe(async { callback(with).await });
    match calling.catch_unwind().await {
        Ok(()) => true,
        Err(panic) => {
            tracing::error!(
                panic = panicked::words(panic.as_ref()),
                "a callback of an election panicked"
            );
            false
        }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callbacks")
    }
}
