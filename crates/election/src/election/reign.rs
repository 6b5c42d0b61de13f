//! Keeping what was won: renewing it until it is resigned or lost, and then telling the store.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::time::{boot_time, millis};
use frazil_coord::{Ask, Error, ErrorKind, Extended, Leasing, Tenure, rules};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::Elections;
use super::campaign::FIRST_PAUSE;
use super::leadership::Resignation;
use super::settings::Settings;
use super::state::{LeaderLoss, State};
use super::term::Term;

/// The task of a leader.
pub(super) struct Reign {
    pub(super) elections: Elections,
    pub(super) settings: Arc<Settings>,
    pub(super) state: watch::Sender<State>,
    pub(super) term: Arc<Term>,
    pub(super) tenure: Tenure,
    /// For how long an acknowledgement is good from when it was asked for; `None` where no time
    /// ends presence.
    pub(super) trust: Option<Duration>,
    /// When the last request was sent that was acknowledged, in boot time.
    pub(super) renewed: Duration,
    /// Whether the last renewal failed.
    pub(super) in_jeopardy: bool,
    /// When its answer was here, in boot time: presence ends no later than a time to live after.
    pub(super) answered: Duration,
    /// Whether anybody was told to lead: the answer to a claim may take all the time.
    pub(super) begins: bool,
}

/// How it ended.
enum End {
    Resigned(Option<Resignation>),
    Lost(LeaderLoss),
}

/// Whoever resigns waits no longer than this for the store; it goes on being told.
const PATIENCE: Duration = Duration::from_secs(5);

impl Reign {
    pub(super) async fn run(mut self, mut resigned: oneshot::Receiver<Resignation>) {
        let end = self.renew_until(&mut resigned).await;
        // Whoever resigns from here on is not kept waiting: it leads no more.
        drop(resigned);
        match end {
            End::Resigned(resignation) if self.term.is_held() || self.lock_delay().is_zero() => {
                let (slot, token) = (&self.tenure.slot, self.tenure.token);
                tracing::info!(%slot, %token, "releasing the leadership");
                self.end(LeaderLoss::Released);
                self.release(resignation).await;
            }
            // Whoever resigns after the end is told that it is over, and not that others may lead.
            End::Resigned(_) | End::Lost(LeaderLoss::Expired) => {
                self.lose(LeaderLoss::Expired);
                self.outlast_lock_delay().await;
                self.release(None).await;
            }
            End::Lost(LeaderLoss::StoreLost) => {
                self.lose(LeaderLoss::StoreLost);
                self.owe().await;
            }
            // Nobody needs to be told of what the store itself said.
            End::Lost(loss) => self.lose(loss),
        }
    }

    fn lose(&self, loss: LeaderLoss) {
        if self.begins {
            let (slot, token) = (&self.tenure.slot, self.tenure.token);
            tracing::info!(%slot, %token, %loss, "lost the leadership");
        }
        self.end(loss);
    }

    /// It leads no more. If it was ended before, that reason stays.
    fn end(&self, loss: LeaderLoss) {
        self.term.end(loss);
        self.tell();
    }

    /// How long others wait after a leader that was lost without resigning. What never began has no
    /// work that could go on.
    fn lock_delay(&self) -> Duration {
        if self.begins { self.settings.lock_delay } else { Duration::ZERO }
    }

    /// Waits for as long as others do. A release says that the work has stopped, and nobody has
    /// said that of work whose time ran out: it may have been frozen, with all of this process.
    async fn outlast_lock_delay(&self) {
        if self.lock_delay().is_zero() {
            return;
        }
        let lapsed = (self.answered + self.settings.ttl).max(boot_time());
        let until = lapsed + self.lock_delay();
        // Timers stand still while the machine sleeps.
        while boot_time() < until {
            sleep(until.saturating_sub(boot_time())).await;
        }
    }

    async fn renew_until(&mut self, resigned: &mut oneshot::Receiver<Resignation>) -> End {
        let mut next = self.renewed + self.settings.heartbeat;
        let (mut pause, mut steps_down) = (FIRST_PAUSE, false);
        loop {
            tokio::select! {
                biased;
                // A leadership that is dropped is resigned.
                asked = &mut *resigned => return End::Resigned(asked.ok()),
                () = self.lapsed() => return End::Lost(LeaderLoss::Expired),
                // It goes on being renewed, so that nobody else leads before it is resigned.
                () = self.term.ended(), if !steps_down => {
                    steps_down = true;
                    self.tell();
                    continue;
                }
                () = sleep(next.saturating_sub(boot_time())) => {}
            }
            let sent = boot_time();
            let renewal = tokio::select! {
                biased;
                asked = &mut *resigned => return End::Resigned(asked.ok()),
                () = self.lapsed() => return End::Lost(LeaderLoss::Expired),
                renewal = self.extend() => renewal,
            };
            match renewal {
                // After the deadline it is over, whatever the store says: others may have been told.
                Ok(_) if !self.term.is_held() => return End::Lost(LeaderLoss::Expired),
                Ok(Extended::Held(tenure)) => {
                    let deadline = self.trust.map(|trust| sent + trust);
                    self.term.prolong(deadline, tenure.usable);
                    (self.tenure, self.answered, self.in_jeopardy) = (tenure, boot_time(), false);
                    let (slot, token) = (&self.tenure.slot, self.tenure.token);
                    tracing::debug!(%slot, %token, "heartbeat sent");
                    self.tell();
                    (next, pause) = (sent + self.settings.heartbeat, FIRST_PAUSE);
                }
                Ok(Extended::Lost(loss)) => return End::Lost(loss.into()),
                Err(error) => {
                    tracing::debug!(%error, slot = %self.tenure.slot, "a heartbeat failed");
                    self.in_jeopardy = true;
                    self.tell();
                    next = boot_time() + pause;
                    pause = (pause * 2).min(self.settings.heartbeat);
                }
            }
        }
    }

    /// Waits until the deadline has passed.
    async fn lapsed(&self) {
        loop {
            match self.term.held_for() {
                None => pending().await,
                Some(Duration::ZERO) => return,
                Some(left) => sleep(left).await,
            }
        }
    }

    async fn extend(&self) -> Result<Extended, Error> {
        let now = self.settings.clock.now();
        let window = self.settings.window;
        let ask = Ask {
            horizon: window.map_or(0, |window| now + millis(window)),
            ttl: self.settings.ttl,
            now,
            window_ms: millis(window.unwrap_or(self.settings.ttl)),
        };
        self.elections.store().extend(&self.tenure, &ask).await
    }

    /// Times up to its horizon may have been used, and the store has forgotten it: whoever comes
    /// next starts above them. Newcomers to a namespace wait for this to be said, and no longer.
    async fn owe(&self) {
        if self.settings.window.is_none() {
            return;
        }
        let until = boot_time() + Duration::from_millis(rules::SILENCE_MS);
        let mut pause = FIRST_PAUSE;
        while boot_time() < until {
            let charter = self.elections.charter();
            match charter.owe(self.tenure.horizon, self.settings.clock.now()).await {
                Ok(()) => return,
                Err(error) => {
                    let slot = &self.tenure.slot;
                    tracing::warn!(%error, %slot, "times that may have been used are not marked yet");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(self.settings.heartbeat);
        }
    }

    /// Gives the slot back, and does not stop trying before the store has answered: other slots of
    /// this process may keep its presence alive, and then nobody else could ever lead.
    async fn release(self, resignation: Option<Resignation>) {
        let (mut done, last) = match resignation {
            Some(Resignation { last, done }) => (Some(done), last),
            None => (None, None),
        };
        let last = last.unwrap_or(match self.settings.window {
            // Nobody said which times were used.
            Some(_) => self.tenure.horizon,
            None => 0,
        });
        let store = self.elections.store();
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match timeout(PATIENCE, store.release(&self.tenure, last)).await {
                Ok(Ok(_)) => break,
                Ok(Err(error)) => error,
                Err(_) => Error::new(ErrorKind::Unknown, "resign", store, "no answer yet"),
            };
            tracing::debug!(%error, slot = %self.tenure.slot, "a release failed");
            if let Some(told) = done.take() {
                // Whoever resigned may have gone.
                let _ = told.send(Err(error));
            }
            sleep(pause).await;
            pause = (pause * 2).min(self.settings.retry);
        }
        if let Some(told) = done {
            let _ = told.send(Ok(()));
        }
    }

    fn tell(&self) {
        let token = self.tenure.token;
        let state = match self.term.loss() {
            Some(loss) => State::Lost { token, loss },
            None if self.in_jeopardy => State::Jeopardy { token },
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
}
