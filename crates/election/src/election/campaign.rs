//! A campaign and the leadership that comes of it, as the holder of a lease.

use std::future::pending;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frazil_coord::internal::keeper::{Candidacy, Driver, Holder, Now, Pause, Plan, Woken, present};
use frazil_coord::internal::time::boot_time;
use frazil_coord::internal::{Claim, Released, Tenure};
use frazil_coord::{Error, ErrorKind, Look, Loss, Meta, Nonce, Slot, Store, UnixMs, Versioned};
use frazil_coord::{LeaseState, LeaseStatus, Refusal, Waiting};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use super::Elections;
use super::candidate::Pace;
use super::info::LeaderInfo;
use super::leadership::{Leadership, Resignation};
use super::settings::Settings;
use super::slot_watcher::{SlotWatcher, View};
use super::state::{LeaderLoss, State};
use super::term::Term;

/// What was seen longer ago is not claimed by: the store's clock in it counts, for tokens too.
const JUST_SEEN: Duration = Duration::from_millis(100);

/// One campaign, and the leadership that comes of it.
pub(super) struct Campaign {
    pub(super) elections: Elections,
    pub(super) watcher: Arc<SlotWatcher>,
    pub(super) views: watch::Receiver<Arc<View>>,
    pub(super) slot: Slot,
    pub(super) settings: Arc<Settings>,
    pub(super) state: watch::Sender<State>,
    /// Of the candidate.
    pub(super) mark: Nonce,
    pub(super) pace: Pace,
    pub(super) stage: Stage,
    pub(super) told: ReportedState,
}

/// What was told already.
#[derive(Default)]
pub(super) struct ReportedState {
    /// Meta as this campaign saw it last.
    meta: Option<Versioned<Meta>>,
    /// What the candidate waits for.
    waiting: Option<Discriminant<Waiting>>,
    /// Whether the store is in trouble.
    trouble: bool,
}

/// How far it has come.
pub(super) enum Stage {
    /// Somebody waits to be elected.
    Waiting(ElectedSender),
    /// It leads, until it resigns. `steps_down`: it has said that it leads no more, and keeps the slot.
    Leading { term: Arc<Term>, resigned: oneshot::Receiver<Resignation>, steps_down: bool },
    /// It leads no more, and whoever resigned may still wait to hear that the store knows.
    Over(Option<oneshot::Sender<Result<(), Error>>>),
}

type ElectedSender = oneshot::Sender<Result<Leadership, Error>>;

/// Meta as any campaign of the process saw it last, so that not each has to read it.
#[derive(Debug, Default)]
pub(super) struct KnownMeta(Mutex<Option<Versioned<Meta>>>);

impl KnownMeta {
    fn get(&self) -> Option<Versioned<Meta>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, meta: Option<Versioned<Meta>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = meta;
    }
}

impl Campaign {
    pub(super) async fn run(mut self) {
        self.state.send_replace(State::Candidate);
        let store = self.elections.store().clone();
        let trust = (!store.is_bound_to_process()).then(|| self.settings.trust());
        let Settings { ttl, heartbeat, retry, lock_delay, window, .. } = *self.settings;
        let candidacy = Candidacy {
            slot: self.slot.clone(),
            holder: self.settings.instance.clone(),
            ttl,
            heartbeat,
            retry,
            lock_delay,
            trust,
            window,
            first_use: self.elections.shared.first_use,
        };
        match present(&self) {
            Ok(now) => {
                self.told.meta = self.elections.shared.meta.get();
                let plan = Plan::for_leader(candidacy, self.told.meta.clone(), now);
                let mark = self.elections.shared.mark.clone();
                Driver::new(store, plan, self, mark).run().await;
            }
            Err(refusal) => self.refused(&refusal),
        }
    }

    /// It neither leads nor campaigns any more, and cannot.
    fn refused(&mut self, refusal: &Refusal) {
        match std::mem::replace(&mut self.stage, Stage::Over(None)) {
            Stage::Waiting(elected) => {
                self.state.send_replace(State::Follower);
                // If nobody waits any more, nobody wants to know.
                let _ = elected.send(Err(self.error(refusal)));
            }
            Stage::Leading { term, .. } => self.tell_of_loss(&term, LeaderLoss::StoreLost),
            Stage::Over(done) => self.stage = Stage::Over(done),
        }
    }

    fn error(&self, refusal: &Refusal) -> Error {
        match refusal {
            Refusal::Store(error) => error.clone(),
            other => Error::new(
                ErrorKind::Unavailable,
                "campaign",
                self.elections.store(),
                other.to_string(),
            ),
        }
    }

    /// It leads no more. If it was ended before, that reason stays.
    fn tell_of_loss(&self, term: &Term, loss: LeaderLoss) {
        term.end(loss);
        self.tell_of(term, false);
    }

    /// Tells where the candidate stands.
    fn tell_of(&self, term: &Term, is_in_jeopardy: bool) {
        let token = term.token;
        let state = match term.loss() {
            Some(loss) => State::Lost { token, loss },
            None if is_in_jeopardy => State::Jeopardy { token },
            None => State::Leader { token },
        };
        self.state.send_if_modified(|known| {
            let is_new = *known != state;
            if is_new {
                *known = state;
            }
            is_new
        });
    }

    /// Says what a candidate waits for besides its turn, and that the store is in trouble; once.
    fn log(&mut self, status: &LeaseStatus) {
        let slot = &self.slot;
        let waiting = match &status.state {
            LeaseState::Seeking(waiting) if *waiting != Waiting::Answer => Some(waiting),
            _ => None,
        };
        let kind = waiting.map(discriminant);
        if let Some(waiting) = waiting.filter(|_| self.told.waiting != kind) {
            tracing::warn!(%slot, "waiting for {waiting}");
        }
        self.told.waiting = kind;
        if let Some(error) = status.trouble.as_ref().filter(|_| !self.told.trouble) {
            tracing::debug!(%slot, error = %format_args!("{error:#}"), "the store is in trouble");
        }
        self.told.trouble = status.trouble.is_some();
    }

    /// Gives the slot up, as it was asked to.
    fn resign(&mut self, resignation: Option<Resignation>) -> Woken {
        let (mut last, mut done) = (None, None);
        if let Some(resignation) = resignation {
            (last, done) = (resignation.last, Some(resignation.done));
        }
        if let Stage::Leading { term, .. } = &self.stage {
            let (slot, token) = (&self.slot, term.token);
            if term.is_held() || self.settings.lock_delay.is_zero() {
                tracing::info!(%slot, %token, "releasing the leadership");
                self.tell_of_loss(term, LeaderLoss::Released);
            } else {
                // Whoever resigns after the end is told that it is over, not that others may lead.
                done = None;
                tracing::info!(%slot, %token, loss = %LeaderLoss::Expired, "lost the leadership");
                self.tell_of_loss(term, LeaderLoss::Expired);
            }
        }
        self.stage = Stage::Over(done);
        Woken::ToEnd(last)
    }

    /// Waits for whoever waits or leads to want no more, or for its time to run out.
    async fn disturbed(&mut self, may_step_down: bool) -> Woken {
        let resignation = match &mut self.stage {
            Stage::Waiting(elected) => {
                elected.closed().await;
                self.state.send_replace(State::Follower);
                self.stage = Stage::Over(None);
                return Woken::ToEnd(None);
            }
            Stage::Leading { term, resigned, steps_down } => tokio::select! {
                biased;
                // A leadership that is dropped is resigned.
                resignation = resigned => resignation.ok(),
                () = lapsed(term) => return Woken::ByExpiry,
                // It goes on being renewed, so that nobody else leads before it is resigned.
                () = term.ended(), if may_step_down && !*steps_down => {
                    *steps_down = true;
                    return Woken::ByTime;
                }
            },
            Stage::Over(_) => return pending().await,
        };
        self.resign(resignation)
    }

    /// Waits for news of the slot.
    async fn news(views: &mut watch::Receiver<Arc<View>>, pause: Duration) {
        tokio::select! {
            // The watcher outlives this.
            _ = views.changed() => {}
            () = sleep(pause) => {}
        }
    }
}

impl Holder for Campaign {
    fn now(&self) -> UnixMs {
        self.settings.clock.now()
    }

    fn inform(&mut self, plan: &mut Plan) {
        if matches!(self.stage, Stage::Waiting(_)) {
            let view = self.views.borrow_and_update().clone();
            let entry = view.entries.get(self.slot.name());
            plan.saw(entry, (view.asked, view.seen), (self.pace)(&view));
        }
    }

    async fn complete(&mut self, _store: &dyn Store, claim: &mut Claim, now: Now) {
        claim.info = LeaderInfo::written(&self.settings, self.mark, now.unix);
    }

    fn seen(&self) -> Option<Look> {
        let view = self.views.borrow();
        let age = boot_time().saturating_sub(view.asked);
        view.look.clone().filter(|_| age <= JUST_SEEN)
    }

    fn open(&mut self, plan: &Plan, _asked: Duration) {
        let Some(tenure) = plan.tenure() else { return };
        let is_bound = self.elections.store().is_bound_to_process();
        let deadline = (!is_bound).then(|| plan.sent() + self.settings.trust());
        let (name, times) = (self.slot.name().to_owned(), (tenure.floor, tenure.usable));
        let term = Arc::new(Term::new(
            name,
            tenure.token,
            times,
            deadline,
            self.elections.shared.mark.clone(),
        ));
        let (resign, resigned) = oneshot::channel();
        let leading = Stage::Leading { term: term.clone(), resigned, steps_down: false };
        let Stage::Waiting(elected) = std::mem::replace(&mut self.stage, leading) else { return };
        let (slot, token) = (&self.slot, term.token);
        tracing::info!(%slot, %token, instance = self.settings.instance, "became the leader");
        self.state.send_replace(State::Leader { token });
        // If nobody waits any more, this drops the leadership, which resigns it.
        let _ = elected.send(Ok(Leadership::new(term, resign)));
    }

    fn raise(&mut self, horizon: UnixMs, asked: Duration) {
        if let Stage::Leading { term, .. } = &self.stage {
            let is_bound = self.elections.store().is_bound_to_process();
            term.prolong((!is_bound).then(|| asked + self.settings.trust()), horizon);
            tracing::debug!(slot = %self.slot, token = %term.token, "heartbeat sent");
        }
    }

    fn close(&mut self) {}

    fn lost(&mut self, tenure: &Tenure, loss: &Loss) {
        let Stage::Leading { term, .. } = std::mem::replace(&mut self.stage, Stage::Over(None))
        else {
            return;
        };
        let (slot, token, loss) = (&tenure.slot, tenure.token, LeaderLoss::from(loss.clone()));
        tracing::info!(%slot, %token, %loss, "lost the leadership");
        self.tell_of_loss(&term, loss);
    }

    fn released(&mut self, tenure: &Tenure, _last: UnixMs, answer: &Result<Released, Error>) {
        if let Err(error) = answer {
            tracing::debug!(error = %format_args!("{error:#}"), slot = %tenure.slot, "a release failed");
        }
        if let Stage::Over(done) = &mut self.stage
            && let Some(told) = done.take()
        {
            // Whoever resigned may have gone. The store goes on being told.
            let _ = told.send(answer.as_ref().map(|_| ()).map_err(Clone::clone));
        }
    }

    fn tell(&mut self, plan: &Plan) {
        if plan.meta().is_some() && plan.meta() != self.told.meta.as_ref() {
            self.told.meta = plan.meta().cloned();
            self.elections.shared.meta.keep(self.told.meta.clone());
        }
        self.log(plan.status());
        match (&plan.status().state, &self.stage) {
            (LeaseState::Refused(refusal), _) => self.refused(refusal),
            (state, Stage::Leading { term, .. }) => {
                let is_renewed = matches!(state, LeaseState::Held);
                self.tell_of(term, !is_renewed);
            }
            _ => {}
        }
    }

    async fn wait(&mut self, wait: Pause<'_>) -> Woken {
        if wait.looks {
            self.watcher.look();
        }
        // Timers stand still while the machine sleeps: the plan, asked again too early, says again
        // how long to wait.
        let mut views = self.views.clone();
        let is_waiting = matches!(self.stage, Stage::Waiting(_));
        tokio::select! {
            biased;
            woken = self.disturbed(true) => woken,
            () = Self::news(&mut views, wait.pause), if is_waiting => Woken::ByTime,
            () = sleep(wait.pause), if !is_waiting => Woken::ByTime,
        }
    }

    async fn interrupted(&mut self) -> Woken {
        self.disturbed(false).await
    }
}

/// Waits until the store no longer keeps the slot.
async fn lapsed(term: &Term) {
    loop {
        match term.held_for() {
            None => pending().await,
            Some(Duration::ZERO) => return,
            Some(left) => sleep(left).await,
        }
    }
}
