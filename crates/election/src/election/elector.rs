//! The elector: it campaigns until it is stopped, and calls back when it leads and when it does not.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use frazil_coord::Error;
use tokio::sync::{mpsc, oneshot, watch};

use super::callbacks::{Callbacks, Hook};
use super::caller::{self, Call, Calling, is_within};
use super::candidate::Candidate;
use super::info::LeaderInfo;
use super::leadership::{Leadership, Proof};
use super::observer::Observer;
use super::state::{LeaderLoss, State};

/// Campaigns whenever it does not lead, until it is stopped or its last clone is dropped; both
/// resign. Clones are the same elector.
#[derive(Clone, Debug)]
pub struct Elector {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    candidate: Candidate,
    led: Arc<RwLock<Option<Proof>>>,
    leader: watch::Receiver<Option<LeaderInfo>>,
    calls: mpsc::UnboundedSender<Call>,
    /// Of what calls back.
    number: u64,
    /// Dropping it stops too.
    stop: watch::Sender<bool>,
    ended: watch::Receiver<Option<Result<(), Error>>>,
}

impl Elector {
    /// Starts to campaign. Must be called inside a Tokio runtime.
    #[must_use]
    pub fn start(candidate: Candidate, callbacks: Callbacks) -> Self {
        let led = Arc::new(RwLock::new(None));
        let (stop, stopped) = watch::channel(false);
        let (publish, leader) = watch::channel(None);
        let (end, ended) = watch::channel(None);
        let calling = caller::start(callbacks);
        let (calls, number) = (calling.calls.clone(), calling.number);
        let electing = ElectorTask {
            observer: candidate.observe(),
            candidate: candidate.clone(),
            calling,
            led: led.clone(),
            publish,
        };
        tokio::spawn(async move { end.send_replace(Some(electing.run(stopped).await)) });
        Self { shared: Arc::new(Shared { candidate, led, leader, calls, number, stop, ended }) }
    }

    /// Adds what is called when elected; at once if it leads. What it starts should end when the
    /// [proof](Proof::cancelled) says so. It may also do the work itself and return when that has
    /// ended, but then other callbacks wait for it.
    pub fn on_elected<F>(&self, callback: impl FnMut(Proof) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.add(Hook::elected(callback));
    }

    /// Adds what is called when a renewal failed while leading.
    pub fn on_jeopardy<F>(&self, callback: impl FnMut(Proof) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.add(Hook::jeopardy(callback));
    }

    /// Adds what is called after leading, exactly once for each time that it was told of an
    /// election. By then [`is_leader`](Self::is_leader) says no and proofs are
    /// [cancelled](Proof::cancelled), so this can wait for what the leader was doing. If it was not
    /// lost but is being stopped, the store is told when this has returned: until then nobody else
    /// leads, for as long as [`Callbacks::drain_limit`] allows.
    pub fn on_lost<F>(&self, callback: impl FnMut(Proof, LeaderLoss) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.add(Hook::lost(callback));
    }

    /// Adds what is called when it is seen that somebody else leads than before, or nobody does; at
    /// once if that is known.
    pub fn on_leader_changed<F>(
        &self,
        callback: impl FnMut(Option<LeaderInfo>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.add(Hook::changed(callback));
    }

    fn add(&self, hook: Hook) {
        // After the end nothing is called for.
        let _ = self.shared.calls.send(Call::Add(hook));
    }

    /// Whether it leads, by the time that it is now.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.proof().is_some()
    }

    /// The proof of its leadership, while it leads.
    #[must_use]
    pub fn proof(&self) -> Option<Proof> {
        let led = self.shared.led.read().unwrap_or_else(PoisonError::into_inner);
        led.clone().filter(Proof::is_leader)
    }

    /// Who leads, as last seen, and whenever somebody else does. What it says of the last heartbeat
    /// is kept up without being told of.
    #[must_use]
    pub fn leader(&self) -> watch::Receiver<Option<LeaderInfo>> {
        self.shared.leader.clone()
    }

    /// Where it stands, and whenever that changes.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared.candidate.state()
    }

    /// Who it is.
    #[must_use]
    pub fn instance(&self) -> &str {
        self.shared.candidate.instance()
    }

    /// Stops campaigning; if it leads, it leads no more, calls `on_lost`, and then resigns, and waits
    /// for all of that. Any clone can stop it, and it can be stopped more than once. In one of its
    /// own callbacks this does not wait, because the callback is waited for.
    ///
    /// # Errors
    /// Why it had stopped campaigning before, or why the store was not told.
    pub async fn stop(&self) -> Result<(), Error> {
        self.shared.stop.send_replace(true);
        if is_within(self.shared.number) {
            return Ok(());
        }
        let mut ended = self.shared.ended.clone();
        // If nobody says how it ended, its runtime did.
        let told = ended.wait_for(Option::is_some).await.map(|ended| ended.clone());
        told.ok().flatten().unwrap_or(Ok(()))
    }
}

/// How a leadership ended.
enum LeadershipEnd {
    Lost,
    Stopped,
    Panicked,
}

/// The task of an elector.
struct ElectorTask {
    candidate: Candidate,
    observer: Observer,
    calling: Calling,
    led: Arc<RwLock<Option<Proof>>>,
    publish: watch::Sender<Option<LeaderInfo>>,
}

impl ElectorTask {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) -> Result<(), Error> {
        let ended = self.elect(&mut stopped).await;
        if let Err(error) = &ended {
            let election = self.candidate.name();
            tracing::error!(error = %format_args!("{error:#}"), election, "this candidate campaigns no more");
        }
        self.call(Call::Close);
        // Panics of callbacks are caught: it ends by itself, or with the runtime.
        let _ = self.calling.task.await;
        ended
    }

    async fn elect(&mut self, stopped: &mut watch::Receiver<bool>) -> Result<(), Error> {
        loop {
            let candidate = self.candidate.clone();
            let mut campaign = std::pin::pin!(candidate.campaign());
            let leadership = loop {
                tokio::select! {
                    biased;
                    () = stop(stopped) => return Ok(()),
                    elected = &mut campaign => break elected?,
                    () = self.follow() => {}
                }
            };
            let pause = match self.lead(leadership, stopped).await? {
                LeadershipEnd::Stopped => return Ok(()),
                LeadershipEnd::Lost => Duration::ZERO,
                // Another shall have a chance.
                LeadershipEnd::Panicked => self.candidate.settings().retry,
            };
            tokio::select! {
                () = stop(stopped) => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Leads until that is over.
    async fn lead(
        &mut self,
        leadership: Leadership,
        stopped: &mut watch::Receiver<bool>,
    ) -> Result<LeadershipEnd, Error> {
        let proof = leadership.proof();
        let (mut panics, mut state) = (self.calling.panics.clone(), self.candidate.state());
        panics.mark_unchanged();
        self.note(Some(proof.clone()));
        self.call(Call::Elected(proof.clone()));
        let mut led = LeadershipEnd::Lost;
        while matches!(led, LeadershipEnd::Lost) && leadership.is_leader() {
            tokio::select! {
                biased;
                () = stop(stopped) => led = LeadershipEnd::Stopped,
                () = leadership.cancelled() => {}
                Ok(()) = panics.changed() => led = LeadershipEnd::Panicked,
                Ok(()) = state.changed() => {
                    if *state.borrow_and_update() == (State::Jeopardy { token: proof.token() }) {
                        self.call(Call::Jeopardy(proof.clone()));
                    }
                }
                () = self.follow() => {}
            }
        }
        let loss = leadership.loss().unwrap_or(LeaderLoss::Released);
        // Over here before anybody is called, and kept in the store until all have returned.
        leadership.step_down();
        self.note(None);
        self.drained(proof, loss).await;
        let told = leadership.resign().await;
        match led {
            LeadershipEnd::Stopped => told.map(|()| led),
            // The store goes on being told.
            LeadershipEnd::Lost | LeadershipEnd::Panicked => Ok(led),
        }
    }

    /// Calls for the end of a leadership, and waits until all callbacks have returned.
    async fn drained(&mut self, proof: Proof, loss: LeaderLoss) {
        let (waiting, mut returned) = oneshot::channel();
        self.call(Call::Lost(proof, loss, waiting));
        loop {
            tokio::select! {
                biased;
                _ = &mut returned => return,
                () = self.follow() => {}
            }
        }
    }

    /// Waits until the store was looked at again, and tells who leads.
    async fn follow(&mut self) {
        let leader = self.observer.looked().await;
        let is_news = self.observer.is_news(leader.as_ref());
        // A heartbeat is no news, and seen by whoever looks.
        self.publish.send_if_modified(|known| {
            known.clone_from(&leader);
            is_news
        });
        if is_news {
            self.call(Call::Changed(leader));
        }
    }

    fn call(&self, call: Call) {
        // It is there until it is told to close.
        let _ = self.calling.calls.send(call);
    }

    fn note(&self, proof: Option<Proof>) {
        *self.led.write().unwrap_or_else(PoisonError::into_inner) = proof;
    }
}

/// Waits until it is to stop: it was told to, or nobody is left to tell.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
