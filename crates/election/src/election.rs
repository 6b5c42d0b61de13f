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
//! | follow the leader without contending | [`Observer`] |
//! | show leaders | [`Elections::leaders`], [`LeaderInfo`] |

mod board;
mod callbacks;
mod caller;
mod campaign;
mod candidate;
mod charter;
mod elector;
mod environment;
mod info;
mod leadership;
mod observer;
mod reign;
mod run;
mod seek;
mod settings;
mod state;
mod term;

use std::sync::{Arc, OnceLock};

use frazil_coord::stores::file::Copied;
use frazil_coord::{BadName, Error, Group, Namespace, Slot, Store, StoreUrl};

use self::board::Board;
use self::charter::Charter;

pub use self::board::View;
pub use self::callbacks::Callbacks;
pub use self::candidate::{Candidate, Pace};
pub use self::elector::Elector;
pub use self::environment::{BadVariable, Variable};
pub use self::info::{LeaderInfo, Standings};
pub use self::leadership::{Leadership, NotLeader, Proof};
pub use self::observer::Observer;
pub use self::run::{run, run_until};
pub use self::settings::{BadSettings, NotACandidate, Settings, store_url};
pub use self::state::{LeaderLoss, State};

/// The elections of a namespace, over one client of its store. Clones are the same.
///
/// However many elections there are, the store is watched and listed once for all of them.
#[derive(Clone, Debug)]
pub struct Elections {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    charter: Charter,
    elections: OnceLock<Board>,
    scopes: OnceLock<Board>,
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
        Ok(Self::new(frazil_coord::open(&url, namespace, Copied::Refuse).await?))
    }

    /// The elections behind a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let charter = Charter::new(store.clone());
        let (elections, scopes) = (OnceLock::new(), OnceLock::new());
        Self { shared: Arc::new(Shared { store, charter, elections, scopes }) }
    }

    /// Somebody who may be elected. Nothing is asked of the store yet.
    ///
    /// # Errors
    /// If the name cannot name an election, or the settings do not go together.
    pub fn candidate(&self, name: &str, settings: Settings) -> Result<Candidate, NotACandidate> {
        let slot = Slot::named(Group::Elections, name).map_err(NotACandidate::Name)?;
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
    ) -> Result<Candidate, NotACandidate> {
        if slot.group() == Group::Workers {
            return Err(NotACandidate::Worker(slot));
        }
        settings.checked().map_err(NotACandidate::Settings)?;
        Ok(Candidate::new(self.clone(), slot, settings))
    }

    /// Follows the leader of an election. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// If the name cannot name an election.
    pub fn observe(&self, name: &str) -> Result<Observer, BadName> {
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
    pub async fn leaders(&self) -> Result<Vec<Standings>, Error> {
        self.standings(Group::Elections).await
    }

    /// Every slot of a kind that there ever was, with who holds it, as the store has it now.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn standings(&self, group: Group) -> Result<Vec<Standings>, Error> {
        let entries = self.shared.store.list(group).await?;
        let mut standings: Vec<_> = entries.iter().map(Standings::of).collect();
        standings.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(standings)
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
        let entries = self.shared.store.list(slot.group()).await?;
        let entry = entries.iter().find(|entry| entry.slot == *slot);
        Ok(entry.and_then(LeaderInfo::of))
    }

    /// What was last seen of all elections, now and whenever it changes. Kept up while somebody
    /// campaigns or observes. Must be called inside a Tokio runtime.
    #[must_use]
    pub fn view(&self) -> tokio::sync::watch::Receiver<Arc<View>> {
        let board = self.board(Group::Elections);
        let views = board.subscribe();
        board.look();
        views
    }

    /// The store behind.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    fn charter(&self) -> &Charter {
        &self.shared.charter
    }

    fn board(&self, group: Group) -> &Board {
        let place = match group {
            Group::Scopes => &self.shared.scopes,
            Group::Elections | Group::Workers => &self.shared.elections,
        };
        place.get_or_init(|| Board::start(self.shared.store.clone(), group))
    }
}
