//! The lanes of a node. They may come and go while IDs are issued.

mod rotate;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use frazil_coord::Store;
use frazil_coord::internal::keeper::{Keeper, Setup};
use frazil_coord::{LeaseStatus, Refusal};
use frazil_fork::Birthmark;
use frazil_id::{Layout, Options, StartError as GeneratorError};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::DisciplinedClock;
use crate::lane::NodeLane;
use crate::lane_lease::LaneLease;
use crate::losses::Losses;

/// What every lane of a node is made from.
#[derive(Debug)]
pub(crate) struct LaneTemplate {
    pub(crate) layout: Layout,
    pub(crate) clock: Arc<DisciplinedClock>,
    pub(crate) options: Options,
    pub(crate) losses: Arc<Losses>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) setup: Setup,
    /// Whether the node was given its name, so that it goes on with the workers of that name.
    pub(crate) is_named: bool,
    /// Of the process that the node was started in.
    pub(crate) mark: Birthmark,
    /// The runtime that the node was started in. Leases live there: whoever adds a lane or rotates may
    /// do so from a runtime that ends before the node does.
    pub(crate) runtime: Handle,
}

/// The lanes in use, and the leases behind them.
#[derive(Debug)]
pub(crate) struct Lanes {
    template: LaneTemplate,
    list: Arc<LaneList>,
    keepers: Mutex<Keepers>,
    /// For one rotation at a time.
    rotating: tokio::sync::Mutex<()>,
}

/// One lane as those see it who issue.
#[derive(Clone, Debug)]
pub(crate) struct LaneEntry {
    pub(crate) lane: Arc<NodeLane>,
    status: watch::Receiver<LeaseStatus>,
}

/// Who is there, for those who issue and those who look.
#[derive(Debug)]
struct LaneList {
    entries: ArcSwap<Vec<LaneEntry>>,
    publish: watch::Sender<Vec<LeaseStatus>>,
}

/// The lease of a lane.
#[derive(Debug)]
struct LeasedLane {
    /// Of the lane.
    number: u64,
    keeper: Keeper,
    lease: Arc<LaneLease>,
}

#[derive(Debug, Default)]
struct Keepers {
    leased: Vec<LeasedLane>,
    /// Those that a rotation has started and not put to use yet.
    coming: Vec<LeasedLane>,
    next_number: u64,
    is_over: bool,
}

impl Lanes {
    /// No lanes yet.
    pub(crate) fn new(template: LaneTemplate) -> Self {
        let (publish, _) = watch::channel(Vec::new());
        let list = Arc::new(LaneList { entries: ArcSwap::default(), publish });
        let rotating = tokio::sync::Mutex::default();
        Self { template, list, keepers: Mutex::default(), rotating }
    }

    /// Adds a lane; it issues as soon as it has a worker. `false`: the node was shut down.
    ///
    /// # Errors
    /// If the operating system gives no random bits.
    pub(crate) fn add(&self) -> Result<bool, Refusal> {
        if self.is_copy() {
            return Ok(false);
        }
        let mut keepers = self.keepers();
        if keepers.is_over {
            return Ok(false);
        }
        let number = keepers.next_number;
        let lane = Arc::new(NodeLane::new(number, &self.template));
        let lease = Arc::new(LaneLease::active(lane.clone()));
        let keeper = self.template.first_keeper(lease.clone())?;
        let status = keeper.status();
        keepers.next_number += 1;
        keepers.leased.push(LeasedLane { number, keeper, lease });
        self.change(|entries| entries.push(LaneEntry { lane, status: status.clone() }));
        self.template.runtime.spawn(pass_on(status, self.list.clone()));
        Ok(true)
    }

    /// Takes the last lane out of use, releases its worker and waits for that. The first stays.
    pub(crate) async fn drop_last(&self) -> bool {
        if self.is_copy() {
            return false;
        }
        let keeper = {
            let mut keepers = self.keepers();
            if keepers.leased.len() < 2 {
                return false;
            }
            let Some(LeasedLane { number, keeper, .. }) = keepers.leased.pop() else {
                return false;
            };
            // Out of sight first, so that hardly anybody meets a closed lane.
            self.change(|entries| entries.retain(|entry| entry.lane.number != number));
            keeper
        };
        keeper.shutdown().await;
        true
    }

    /// Ends all lanes for good and waits until their workers are released. In a forked child it does
    /// nothing: the workers are the parent's.
    pub(crate) async fn end(&self) {
        if self.is_copy() {
            return;
        }
        let (leased, coming) = {
            let mut keepers = self.keepers();
            keepers.is_over = true;
            (std::mem::take(&mut keepers.leased), std::mem::take(&mut keepers.coming))
        };
        end_all(leased.into_iter().chain(coming).map(|leased| leased.keeper)).await;
    }

    /// Whether this is a forked child's copy of its parent's lanes. Nothing in it may be locked: a
    /// thread that is not in the child may hold the lock.
    pub(crate) fn is_copy(&self) -> bool {
        !self.template.mark.is_here()
    }

    /// The lanes in use.
    #[inline]
    pub(crate) fn entries(&self) -> Guard<Arc<Vec<LaneEntry>>> {
        self.list.entries.load()
    }

    /// How their leases are doing, now and whenever that changes.
    pub(crate) fn statuses(&self) -> watch::Receiver<Vec<LeaseStatus>> {
        self.list.publish.subscribe()
    }

    /// Why a lane cannot use its grant, if one cannot.
    pub(crate) fn fault(&self) -> Option<GeneratorError> {
        self.entries().iter().find_map(|entry| entry.lane.fault())
    }

    /// For one at a time: the keepers are locked.
    fn change(&self, change: impl FnOnce(&mut Vec<LaneEntry>)) {
        let mut entries = Vec::clone(&self.list.entries.load());
        change(&mut entries);
        self.list.entries.store(Arc::new(entries));
        self.list.tell();
    }

    fn keepers(&self) -> MutexGuard<'_, Keepers> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneTemplate {
    /// The first lease of a lane.
    fn first_keeper(&self, lease: Arc<LaneLease>) -> Result<Keeper, Refusal> {
        let _home = self.runtime.enter();
        match self.is_named {
            true => Keeper::resume(self.store.clone(), lease, self.setup.clone()),
            false => self.keeper(lease),
        }
    }

    /// A lease that begins by itself.
    fn keeper(&self, lease: Arc<LaneLease>) -> Result<Keeper, Refusal> {
        let _home = self.runtime.enter();
        Keeper::start(self.store.clone(), lease, self.setup.clone())
    }
}

impl LaneList {
    /// Collected under the channel's lock, so that the last to tell has seen everything.
    fn tell(&self) {
        self.publish.send_modify(|all| {
            *all = self.entries.load().iter().map(|entry| entry.status.borrow().clone()).collect();
        });
    }
}

/// Ends leases all at once, so that none takes what another releases, and waits for that.
async fn end_all(keepers: impl IntoIterator<Item = Keeper>) {
    let mut ending: JoinSet<()> = keepers.into_iter().map(Keeper::shutdown).collect();
    while ending.join_next().await.is_some() {}
}

/// Passes one lane's status on to those of the whole node, for as long as it is leased.
async fn pass_on(mut status: watch::Receiver<LeaseStatus>, list: Arc<LaneList>) {
    while status.changed().await.is_ok() {
        status.mark_unchanged();
        list.tell();
    }
}
