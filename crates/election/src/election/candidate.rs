//! The candidate of an election.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::{Error, ErrorKind, Nonce, Slot};
use tokio::sync::{oneshot, watch};

use super::campaign::{Campaign, ReportedState, Stage};
use super::info::LeaderInfo;
use super::leadership::Leadership;
use super::settings::Settings;
use super::slot_watcher::{SlotWatcher, View};
use super::state::State;
use super::{Elections, Observer};

/// When a candidate goes for a slot that it sees free: after a while since it first was seen so, or
/// (`None`) not as things are. Asked again whenever the view changes.
pub type Pace = Arc<dyn Fn(&View) -> Option<Duration> + Send + Sync>;

/// Somebody who may be elected, as often as it campaigns. Clones are the same candidate.
#[derive(Clone, Debug)]
pub struct Candidate {
    elections: Elections,
    slot: Slot,
    settings: Arc<Settings>,
    state: watch::Sender<State>,
    /// By which it knows itself among others of its name.
    mark: Nonce,
}

/// The pace of one who holds back for nobody.
pub(crate) fn at_once() -> Pace {
    Arc::new(|_| Some(Duration::ZERO))
}

impl Candidate {
    pub(super) fn new(elections: Elections, slot: Slot, settings: Settings) -> Self {
        let state = watch::Sender::new(State::Follower);
        // Without random bits no claim can be made either.
        let mark = Nonce::mint().unwrap_or(Nonce::from_bits(0));
        Self { elections, slot, settings: Arc::new(settings), state, mark }
    }

    /// Waits until elected, however long the store is away. Dropping this withdraws: what was
    /// claimed by then is given back in the background.
    ///
    /// A second campaign of the same candidate contends with the first, as any other would.
    ///
    /// # Errors
    /// What does not pass by itself: the store does not let us in, or was written by a newer
    /// version.
    pub async fn campaign(&self) -> Result<Leadership, Error> {
        self.campaign_paced(at_once()).await
    }

    /// As [`campaign`](Self::campaign), but goes for a free slot only when `pace` says so, from what it
    /// sees of that slot.
    ///
    /// # Errors
    /// As for `campaign`.
    pub async fn campaign_paced(&self, pace: Pace) -> Result<Leadership, Error> {
        self.campaign_on(self.elections.watcher(&self.slot), pace).await
    }

    /// As [`campaign_paced`](Self::campaign_paced), but the pace sees all elections: each change of any
    /// of them is looked at.
    pub(crate) async fn campaign_among(&self, pace: Pace) -> Result<Leadership, Error> {
        self.campaign_on(self.elections.watcher_of_all().clone(), pace).await
    }

    async fn campaign_on(
        &self,
        watcher: Arc<SlotWatcher>,
        pace: Pace,
    ) -> Result<Leadership, Error> {
        if !self.elections.shared.mark.is_here() {
            let why = "this process is a fork of the one that opened the elections: open them anew";
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                "campaign",
                self.elections.store(),
                why,
            ));
        }
        let (elected, waiting) = oneshot::channel();
        let campaign = Campaign {
            views: watcher.subscribe(),
            watcher,
            elections: self.elections.clone(),
            slot: self.slot.clone(),
            settings: self.settings.clone(),
            state: self.state.clone(),
            mark: self.mark,
            pace,
            stage: Stage::Waiting(elected),
            told: ReportedState::default(),
        };
        // It lives as long as the leadership that comes of it.
        tokio::spawn(campaign.run());
        waiting.await.unwrap_or_else(|_| {
            let why = "the task that campaigns is gone: its runtime ends";
            Err(Error::new(ErrorKind::Unavailable, "campaign", self.elections.store(), why))
        })
    }

    /// Where it stands, now and whenever that changes.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// The election's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.slot.name()
    }

    /// Who it is.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.settings.instance
    }

    /// Whether this leader is this very candidate. Names repeat: `host:1` is what many containers
    /// are called.
    #[must_use]
    pub fn is(&self, leader: &LeaderInfo) -> bool {
        leader.name == self.name() && leader.candidate == Some(self.mark)
    }

    /// How it campaigns.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Follows the leader of the election that it is a candidate of.
    #[must_use]
    pub fn observe(&self) -> Observer {
        self.elections.observe_slot(self.slot.clone())
    }
}
