//! The task behind a campaign: it seeks, claims, and then [reigns](super::reign).

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::time::{boot_time, millis};
use frazil_coord::{
    Acquired, Choice, Claim, Error, ErrorKind, Leasing, Meta, Nonce, Slot, Tenure, Version,
    Versioned,
};
use tokio::sync::{oneshot, watch};

use super::Elections;
use super::board::{Board, View};
use super::candidate::Pace;
use super::info::LeaderInfo;
use super::leadership::Leadership;
use super::reign::Reign;
use super::seek::{Seeking, Wait};
use super::settings::Settings;
use super::state::State;
use super::term::Term;

/// One campaign, and the leadership that comes of it.
pub(super) struct Campaign {
    pub(super) elections: Elections,
    pub(super) board: Arc<Board>,
    pub(super) views: watch::Receiver<Arc<View>>,
    pub(super) slot: Slot,
    pub(super) settings: Arc<Settings>,
    pub(super) state: watch::Sender<State>,
    /// Of the candidate.
    pub(super) mark: Nonce,
}

/// What a claim came to.
enum Claimed {
    /// The slot is held, by a request that was sent at this boot time.
    Held(Box<Tenure>, Duration),
    /// Not now; look again after this.
    Not(Duration),
}

type Elected = oneshot::Sender<Result<Leadership, Error>>;

/// After a failure; each further pause is twice as long, up to the retry interval.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(100);

impl Campaign {
    pub(super) async fn run(mut self, pace: Pace, mut elected: Elected) {
        self.state.send_replace(State::Candidate);
        let mut seeking = Seeking::new(self.settings.lock_delay, self.settings.ttl);
        let mut failures = 0;
        loop {
            let version = tokio::select! {
                biased;
                () = elected.closed() => break,
                version = self.await_vacancy(&mut seeking, &pace) => version,
            };
            // Never dropped in the middle: what it took would be nobody's.
            match self.claim(version).await {
                Ok(Claimed::Held(tenure, sent)) => match self.lead(*tenure, sent, elected).await {
                    None => return,
                    Some(still_waiting) => elected = still_waiting,
                },
                Ok(Claimed::Not(pause)) => {
                    failures = 0;
                    seeking.in_vain(boot_time(), pause);
                }
                Err(error) if error.kind().is_retryable() => {
                    tracing::debug!(%error, slot = %self.slot, "a claim failed");
                    let pause = FIRST_PAUSE * 2_u32.saturating_pow(failures);
                    failures = (failures + 1).min(10);
                    seeking.in_vain(boot_time(), pause.min(self.settings.retry));
                }
                Err(error) => {
                    self.state.send_replace(State::Follower);
                    // If nobody waits any more, nobody wants to know.
                    let _ = elected.send(Err(error));
                    return;
                }
            }
        }
        self.state.send_replace(State::Follower);
    }

    /// Waits until the slot can be claimed; gives the version that it has.
    async fn await_vacancy(&mut self, seeking: &mut Seeking, pace: &Pace) -> Version {
        loop {
            let view = self.views.borrow_and_update().clone();
            let wait = seeking.judge(&view, &self.slot, boot_time(), pace.as_ref());
            let pause = match wait {
                Wait::No(version) => return version,
                Wait::ForALook => {
                    self.board.look();
                    self.settings.retry
                }
                Wait::For(pause) => pause,
                Wait::ForAChange => self.settings.retry,
            };
            tokio::select! {
                // The board outlives this.
                _ = self.views.changed() => {}
                () = tokio::time::sleep(jittered(pause.min(self.settings.retry))) => {
                    if pause >= self.settings.retry {
                        self.board.look();
                    }
                }
            }
        }
    }

    /// Claims the slot as it was seen. An unknown outcome is asked for until it is known: to walk
    /// away would leak a slot that the presence of this very process keeps alive.
    async fn claim(&self, version: Version) -> Result<Claimed, Error> {
        let store = self.elections.store();
        let meta = self.elections.charter().meta(self.settings.clock.now()).await?;
        let mint = Nonce::mint()
            .map_err(|error| Error::new(ErrorKind::Unavailable, "campaign", store, error))?;
        let claim = self.wish(version, mint, &meta);
        // What made it leader, if anything did, may have been the first try.
        let sent = boot_time();
        let mut pause = FIRST_PAUSE;
        loop {
            match store.acquire(&claim).await {
                Ok(Acquired::Held(tenure)) if self.is_misled(&tenure, &meta.value) => {
                    self.elections.charter().moved();
                    self.give_back(&tenure).await;
                    return Ok(Claimed::Not(Duration::ZERO));
                }
                Ok(Acquired::Held(tenure)) => return Ok(Claimed::Held(Box::new(tenure), sent)),
                Ok(Acquired::Taken) => return Ok(Claimed::Not(Duration::ZERO)),
                Ok(Acquired::Full(census)) => {
                    let until =
                        census.next_floor.unwrap_or(0).saturating_sub(self.settings.clock.now());
                    let pause = Duration::from_millis(until).max(FIRST_PAUSE);
                    return Ok(Claimed::Not(pause.min(self.settings.retry)));
                }
                Ok(Acquired::MetaMoved) => {
                    self.elections.charter().moved();
                    return Ok(Claimed::Not(Duration::ZERO));
                }
                Ok(Acquired::ClockOff { store_now }) => {
                    tracing::warn!(slot = %self.slot, store_now, "this clock differs too much from the store's");
                    return Ok(Claimed::Not(self.settings.retry));
                }
                Ok(Acquired::Unsure(..)) => {}
                Err(error) if error.kind() == ErrorKind::Unknown => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(self.settings.retry);
        }
    }

    /// Whether the quarantine that a claim named is not the namespace's: it was created anew since,
    /// and its meta has the same version as the one before.
    fn is_misled(&self, tenure: &Tenure, meta: &Meta) -> bool {
        self.settings.window.is_some() && tenure.incarnation != meta.incarnation
    }

    /// Gives back what nobody has used, however long that takes: see [`claim`](Self::claim).
    async fn give_back(&self, tenure: &Tenure) {
        while let Err(error) = self.elections.store().release(tenure, tenure.floor).await {
            tracing::debug!(%error, slot = %self.slot, "a release failed");
            tokio::time::sleep(jittered(self.settings.retry)).await;
        }
    }

    fn wish(&self, version: Version, nonce: Nonce, meta: &Versioned<Meta>) -> Claim {
        let now = self.settings.clock.now();
        // Without a window no times are used, and nothing about times can stand in the way.
        let (ask, window_ms, quarantine) = match self.settings.window {
            Some(window) => (now + millis(window), millis(window), meta.value.quarantine),
            None => (0, 0, 0),
        };
        Claim {
            choice: Choice::This(self.slot.clone(), version),
            nonce,
            holder: self.settings.instance.clone(),
            info: LeaderInfo::written(&self.settings, self.mark, now),
            ttl: self.settings.ttl,
            now,
            ask,
            window_ms,
            quarantine,
            meta: meta.version,
        }
    }

    /// Leads until that is over. If it is before it began, because the store took all the time to
    /// answer, whoever waits goes on waiting.
    async fn lead(&self, tenure: Tenure, sent: Duration, elected: Elected) -> Option<Elected> {
        let is_bound = self.elections.store().is_bound_to_process();
        let trust = (!is_bound).then(|| self.settings.trust());
        let term = Arc::new(Term::new(
            self.slot.name().to_owned(),
            tenure.token,
            (tenure.floor, tenure.usable),
            trust.map(|trust| sent + trust),
        ));
        let begins = term.lasts();
        let reign = Reign {
            elections: self.elections.clone(),
            settings: self.settings.clone(),
            state: self.state.clone(),
            term: term.clone(),
            tenure,
            trust,
            renewed: sent,
            answered: boot_time(),
            in_jeopardy: false,
            begins,
        };
        let (resign, resigned) = oneshot::channel();
        if !begins {
            reign.run(resigned).await;
            return Some(elected);
        }
        let (slot, token) = (&self.slot, term.token);
        tracing::info!(%slot, %token, instance = self.settings.instance, "became the leader");
        self.state.send_replace(State::Leader { token });
        // If nobody waits any more, this drops the leadership, which resigns it.
        let _ = elected.send(Ok(Leadership::new(term, resign)));
        reign.run(resigned).await;
        None
    }
}

/// A little less than a time, so that those who wait for the same do not all come at once.
fn jittered(pause: Duration) -> Duration {
    let bits = Nonce::mint().map_or(0, Nonce::bits);
    let part = u32::try_from(bits & 0xff).unwrap_or(0);
    pause - pause / 4 * part / 0xff
}
