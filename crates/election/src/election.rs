//! One leader at a time, on the same slots and stores as workers.
//!
//! ```
//! # async fn lead(store: std::sync::Arc<dyn frazil_coord::Store>) -> Result<(), Box<dyn std::error::Error>> {
//! use frazil_election::{Elections, Settings};
//!
//! let elections = Elections::new(store);
//! let candidate = elections.candidate("billing", Settings::default())?;
//! let leadership = candidate.campaign().await?;
//! while leadership.is_leader() {
//!     // Pass the token on with everything that is written: `frazil_election::fence` has helpers.
//!     println!("leading with token {}", leadership.token());
//! #   break;
//! }
//! leadership.resign().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Whether one leads is never stored, only derived: from the boot time before the request was
//! sent that the store acknowledged last, plus the time to live, less what clocks may differ by.
//! So a renewal that hangs, a task that starves and a process that was stopped cannot lie.
//! Between a check and what is done after it a process can be stopped all the same: only what
//! checks the [token](Leadership::token) is safe from that.
//!
//! | to | see |
//! |---|---|
//! | lead | [`Candidate::campaign`], [`Leadership`] |
//! | have callbacks instead | [`Elector`] |
//! | lead at most once a period, whoever leads | [`Periodic`] |
//! | follow the leader without contending | [`Observer`] |
//! | show leaders | [`Elections::leaders`], [`LeaderInfo`] |

mod callbacks;
mod caller;
mod campaign;
mod candidate;
mod clock;
mod elector;
mod environment;
mod info;
mod leadership;
mod observer;
mod periodic;
mod run;
mod settings;
mod slot_watcher;
mod state;
mod term;

use std::sync::{Arc, OnceLock};

use frazil_coord::Copied;
use frazil_coord::internal::Leasing;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::{Error, FirstUse, Group, NameError, Namespace, Slot, Store, StoreUrl, Watched};

use frazil_fork::Birthmark;

use self::campaign::KnownMeta;
use self::slot_watcher::{SlotWatcher, SlotWatchers};

pub use self::callbacks::Callbacks;
pub(crate) use self::candidate::at_once;
pub use self::candidate::{Candidate, Pace};
pub use self::clock::Clock;
pub use self::elector::Elector;
pub use self::environment::{Variable, VariableError};
pub use self::info::{ElectionInfo, LeaderInfo};
pub use self::leadership::{Leadership, NotLeader, Proof};
pub use self::observer::Observer;
pub use self::periodic::{Periodic, Turn};
pub use self::run::{run, run_until};
pub use self::settings::{CandidateError, Settings, SettingsError, store_url};
pub use self::slot_watcher::View;
pub use self::state::{LeaderLoss, State};
pub use frazil_coord::Forgotten;

/// The elections of a namespace, over one client of its store. Clones are the same.
///
/// Whoever campaigns in an election or follows it watches that one alone, once for all in the process, so
/// that it costs the same however many others there are.
#[derive(Clone, Debug)]
pub struct Elections {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    first_use: FirstUse,
    meta: KnownMeta,
    /// Of the process that leads: a copy of it does not.
    mark: Arc<Birthmark>,
    watchers: SlotWatchers,
    /// All elections at once.
    whole: OnceLock<Arc<SlotWatcher>>,
}

impl Elections {
    /// Opens a client of its own of the store behind a URL, fitted to what the settings say: see
    /// [`store_url`].
    ///
    /// # Errors
    /// If the store cannot be reached, does not let us in, or cannot be used.
    pub async fn open(
        url: &StoreUrl,
        namespace: &Namespace,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let url = store_url(url, settings.ttl);
        let store = frazil_coord::open(&url, namespace, Copied::Refuse).await?;
        Ok(Self::new(store).first_use(FirstUse::of(url.scheme)))
    }

    /// The elections behind a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        // Where presence ends with a process, so does the directory's last use: nobody who is gone
        // is waited for.
        let is_local = store.is_bound_to_process();
        let first_use = if is_local { FirstUse::Ahead } else { FirstUse::AfterSilence };
        Self::with_first_use(store, first_use)
    }

    /// The same, with another word on when a namespace that does not exist yet is used. It matters
    /// to those who use times, as leaders of strict scopes do. Nobody may have campaigned yet.
    #[must_use]
    pub fn first_use(self, first_use: FirstUse) -> Self {
        Self::with_first_use(self.shared.store.clone(), first_use)
    }

    fn with_first_use(store: Arc<dyn Store>, first_use: FirstUse) -> Self {
        let (meta, watchers, whole) =
            (KnownMeta::default(), SlotWatchers::default(), OnceLock::new());
        let mark = Arc::new(Birthmark::new());
        Self { shared: Arc::new(Shared { store, first_use, meta, mark, watchers, whole }) }
    }

    /// Somebody who may be elected. Nothing is asked of the store yet.
    ///
    /// # Errors
    /// If the name cannot name an election, or the settings do not go together.
    pub fn candidate(&self, name: &str, settings: Settings) -> Result<Candidate, CandidateError> {
        let slot = Slot::named(Group::Elections, name).map_err(CandidateError::Name)?;
        self.candidate_for(slot, settings)
    }

    /// A candidate for a slot of any kind that is not a worker's.
    ///
    /// # Errors
    /// If the settings do not go together, or the slot is a worker's.
    pub fn candidate_for(
        &self,
        slot: Slot,
        settings: Settings,
    ) -> Result<Candidate, CandidateError> {
        if slot.group() == Group::Workers {
            return Err(CandidateError::Worker(slot));
        }
        settings.checked().map_err(CandidateError::Settings)?;
        Ok(Candidate::new(self.clone(), slot, settings))
    }

    /// Follows the leader of an election. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// If the name cannot name an election.
    pub fn observe(&self, name: &str) -> Result<Observer, NameError> {
        Ok(self.observe_slot(Slot::named(Group::Elections, name)?))
    }

    /// Follows whoever holds a slot of any kind.
    #[must_use]
    pub fn observe_slot(&self, slot: Slot) -> Observer {
        Observer::new(self.clone(), slot)
    }

    /// Every election that there ever was, with its leader, as the store has it now.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn leaders(&self) -> Result<Vec<ElectionInfo>, Error> {
        self.list(Group::Elections).await
    }

    /// Every slot of a kind that there ever was, with who holds it, as the store has it now.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn list(&self, group: Group) -> Result<Vec<ElectionInfo>, Error> {
        let entries = self.shared.store.list(group).await?;
        let mut found: Vec<_> = entries.iter().map(ElectionInfo::of).collect();
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The leader of one election, as the store has it now.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn leader(&self, name: &str) -> Result<Option<LeaderInfo>, Error> {
        match Slot::named(Group::Elections, name) {
            Ok(slot) => self.leader_of(&slot).await,
            Err(_) => Ok(None),
        }
    }

    /// Who holds a slot of any kind, as the store has it now.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn leader_of(&self, slot: &Slot) -> Result<Option<LeaderInfo>, Error> {
        let look = self.shared.store.read(std::slice::from_ref(slot)).await?;
        Ok(look.entry(slot).and_then(LeaderInfo::of))
    }

    /// Removes what the store knows of an election that nobody leads, or led within the last seconds.
    /// The token of the next leader is larger all the same, whatever clocks show. What `frazil elect
    /// --every` remembers of it is gone.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn forget(&self, name: &str) -> Result<Forgotten, Error> {
        match Slot::named(Group::Elections, name) {
            Ok(slot) => self.shared.store.forget_finished(&slot, unix_ms()).await,
            Err(_) => Ok(Forgotten::Unknown),
        }
    }

    /// What was last seen of all elections, now and whenever it changes, for as long as it is kept.
    /// Each change lists all of them. Must be called inside a Tokio runtime.
    #[must_use]
    pub fn view(&self) -> tokio::sync::watch::Receiver<Arc<View>> {
        let watcher = self.watcher_of_all();
        let views = watcher.subscribe();
        watcher.look();
        views
    }

    /// The store behind.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The watcher of one slot.
    fn watcher(&self, slot: &Slot) -> Arc<SlotWatcher> {
        self.shared.watchers.of(&self.shared.store, slot)
    }

    /// The watcher of all elections.
    fn watcher_of_all(&self) -> &Arc<SlotWatcher> {
        let watched = Watched::Group(Group::Elections);
        self.shared
            .whole
            .get_or_init(|| Arc::new(SlotWatcher::start(self.shared.store.clone(), watched)))
    }
}
