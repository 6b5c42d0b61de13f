//! Describing and starting a node.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::keeper::Setup;
use frazil_coord::internal::rules::REQUEST_MAX;
use frazil_coord::internal::time::boot_time;
use frazil_coord::{FirstUse, LeaseState, Waiting};
use frazil_coord::{Metered, Namespace, Store, StoreUrl, Timing, UnixMs};
use frazil_fork::Birthmark;
use frazil_id::{Layout, Options, Rollback};
use tokio::runtime::Handle;

use crate::clock::DisciplinedClock;
use crate::fixed::{fixed_timing, fixed_worker};
use crate::lanes::{LaneTemplate, Lanes};
use crate::losses::Losses;
use crate::node::{Node, Shared};
use crate::start_error::StartError;
use crate::store_choice::{StoreChoice, first_use};
use crate::wall_clock::WallClock;

/// A node cannot have more lanes than this: each is a lease to renew.
pub(crate) const LANES_MAX: usize = 64;
/// How long a start waits for workers by default: longer than a new namespace takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// The workers of a pool: more than anybody runs, and few enough to be looked at one by one.
const POOL_MAX: u32 = 1 << 16;

/// A node to start. The defaults: one lane, the default layout and namespace, and the file store
/// under the user's [state directory](crate::state_directory()).
#[derive(Clone, Debug)]
pub struct Builder {
    store: StoreChoice,
    clock: Option<Arc<dyn WallClock>>,
    layout: Layout,
    namespace: Namespace,
    lanes: usize,
    workers: Option<RangeInclusive<u32>>,
    timing: Timing,
    options: Options,
    holder: Option<String>,
    info: BTreeMap<String, String>,
    patience: Duration,
    first_use: Option<FirstUse>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            store: StoreChoice::Default,
            clock: None,
            layout: Layout::FRAZIL,
            namespace: Namespace::default(),
            lanes: 1,
            workers: None,
            timing: Timing::default(),
            options: Options::default().with_max_ahead(Duration::from_millis(10)),
            holder: None,
            info: BTreeMap::new(),
            patience: PATIENCE,
            first_use: None,
        }
    }

    /// The store's URL. One that makes no sense is an error of [`check`](Self::check) and
    /// [`start`](Self::start).
    #[must_use]
    pub fn store(self, url: &str) -> Self {
        Self { store: StoreChoice::parse(url), ..self }
    }

    /// The store's URL, parsed.
    #[must_use]
    pub fn store_url(self, url: StoreUrl) -> Self {
        Self { store: StoreChoice::Url(url), ..self }
    }

    /// A store that is open already: one that is shared with something else, one that is written
    /// by hand, or one for tests. It must be bound to the namespace that is chosen, where it has
    /// a name.
    #[must_use]
    pub fn store_handle(self, store: Arc<dyn Store>) -> Self {
        Self { store: StoreChoice::Open(store), ..self }
    }

    /// Another source of real time than the operating system: for tests.
    #[must_use]
    pub fn clock(self, clock: impl WallClock + 'static) -> Self {
        Self { clock: Some(Arc::new(clock)), ..self }
    }

    /// The layout of the IDs.
    #[must_use]
    pub const fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The namespace to lease workers from.
    #[must_use]
    pub fn namespace(self, namespace: Namespace) -> Self {
        Self { namespace, ..self }
    }

    /// The URL of the store chosen so far.
    #[must_use]
    pub const fn chosen_store(&self) -> Option<&StoreUrl> {
        self.store.chosen()
    }

    /// The store that will be opened: the one chosen, or the default one, with what follows for it
    /// from the other choices.
    ///
    /// # Errors
    /// As for [`check`](Self::check), and if the store was given open.
    pub fn store_to_open(&self) -> Result<StoreUrl, StartError> {
        self.store.to_open()?;
        self.checked_url()?.ok_or(StartError::NoUrl)
    }

    /// The generators' options chosen so far.
    #[must_use]
    pub const fn chosen_options(&self) -> &Options {
        &self.options
    }

    /// Checks all that can be checked without the store.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self) -> Result<(), StartError> {
        self.checked_url().map(|_| ())
    }

    /// The layout chosen so far.
    #[must_use]
    pub const fn chosen_layout(&self) -> &Layout {
        &self.layout
    }

    /// The namespace chosen so far.
    #[must_use]
    pub const fn chosen_namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// How many lanes to run, each with its own worker.
    #[must_use]
    pub const fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// The workers to lease from. All nodes of a namespace must name the same. By default those
    /// that the namespace gives out, and for a new one all that the layout allows.
    #[must_use]
    pub fn workers(self, workers: RangeInclusive<u32>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// The durations of the leases.
    #[must_use]
    pub const fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// How generators behave; floor and horizon come from the leases.
    #[must_use]
    pub const fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// How the node is called in the store. By default its host and process id. A node that is given
    /// a name begins with the worker that a node of this name had last, if that one is free.
    #[must_use]
    pub fn holder(self, holder: impl Into<String>) -> Self {
        Self { holder: Some(holder.into()), ..self }
    }

    /// Something more to be known of the node in the store.
    #[must_use]
    pub fn info(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.info.insert(name.into(), value.into());
        self
    }

    /// How long the start may wait for workers.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// When a namespace that does not exist yet is used. By default at once on the file store, and
    /// otherwise after live holders of a forgotten one had time to speak up.
    #[must_use]
    pub const fn first_use(mut self, first_use: FirstUse) -> Self {
        self.first_use = Some(first_use);
        self
    }

    /// Opens the store, leases a worker for each lane and starts to renew them.
    ///
    /// # Errors
    /// If that cannot be, or takes longer than it may.
    pub async fn start(self) -> Result<Node, StartError> {
        self.start_watched(|_| {}).await
    }

    /// As [`start`](Self::start), and tells how the first lease is doing while it waits.
    ///
    /// # Errors
    /// As for `start`.
    pub async fn start_watched(self, tell: impl Fn(&LeaseState)) -> Result<Node, StartError> {
        let patience = self.patience;
        let node = self.begin().await?;
        match wait_for_workers(&node, patience, tell).await {
            Ok(()) => check_faults(&node).map(|()| node),
            Err(error) => {
                node.shutdown().await;
                Err(error)
            }
        }
    }

    /// Opens the store and begins to lease, without waiting for workers: see [`Node::watch`].
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub async fn begin(self) -> Result<Node, StartError> {
        self.boxed().await
    }

    /// Boxed, so that a start is compiled here and not in every crate that starts a node.
    fn boxed(self) -> Pin<Box<dyn Future<Output = Result<Node, StartError>> + Send>> {
        Box::pin(self.begin_here())
    }

    async fn begin_here(self) -> Result<Node, StartError> {
        let url = self.checked_url()?;
        let store = self.store.open(url.as_ref(), &self.namespace).await?;
        let holder = self.holder.clone().unwrap_or_else(default_holder);
        let setup = self.setup(url.as_ref(), &holder);
        let is_remote = url.is_some_and(|url| !url.hosts.is_empty());
        frazil_coord::internal::warn_of_neighbours(&store, &setup, is_remote).await;
        self.launch(store, holder, setup)
    }

    fn checked_url(&self) -> Result<Option<StoreUrl>, StartError> {
        let mut url = self.store.described()?;
        if !(1..=LANES_MAX).contains(&self.lanes) {
            return Err(StartError::Lanes(self.lanes));
        }
        self.timing.checked().map_err(StartError::Timing)?;
        self.options.rules(&self.layout, 0).map_err(StartError::Options)?;
        if let Some(url) = &mut url {
            self.check_timeout(url)?;
        }
        let last = last_worker(&self.layout);
        let fixed = url.as_ref().and_then(fixed_worker).map(|number| number..=number);
        match fixed.as_ref().or(self.workers.as_ref()) {
            Some(workers) if workers.is_empty() || *workers.end() > last => {
                Err(StartError::Workers { workers: workers.clone(), last })
            }
            _ => Ok(url),
        }
    }

    /// A request must not take so long that the lease lapses behind it.
    fn check_timeout(&self, url: &mut StoreUrl) -> Result<(), StartError> {
        let (timeout, most) = (url.timeout(), (self.timing.ttl / 4).min(REQUEST_MAX));
        if url.hosts.is_empty() || timeout <= most {
            return Ok(());
        }
        if url.option("timeout").is_some() {
            return Err(StartError::Timeout { timeout, most });
        }
        url.options.insert("timeout".into(), format!("{}ms", most.as_millis().max(1)));
        Ok(())
    }

    fn launch(
        self,
        store: Arc<dyn Store>,
        holder: String,
        setup: Setup,
    ) -> Result<Node, StartError> {
        let store = Arc::new(Metered::new(store));
        let clock = Arc::new(DisciplinedClock::by(self.clock, &self.layout));
        let losses = Arc::new(Losses::default());
        let template = LaneTemplate {
            layout: self.layout,
            clock: clock.clone(),
            options: self.options,
            losses: losses.clone(),
            store: store.clone(),
            is_named: setup.holder != default_holder(),
            setup,
            mark: Birthmark::new(),
            runtime: Handle::current(),
        };
        let lanes = Lanes::new(template);
        for _ in 0..self.lanes {
            lanes.add().map_err(StartError::Refused)?;
        }
        let Self { layout, namespace, .. } = self;
        // As it was chosen, without what follows from the times of leases.
        let url = self.store.to_open().ok();
        let rides = self.options.rollback == Rollback::Ride;
        let shared = Shared { layout, namespace, holder, url, store, clock, rides, losses, lanes };
        Ok(Node { shared: Arc::new(shared) })
    }

    fn setup(&self, url: Option<&StoreUrl>, holder: &str) -> Setup {
        let fixed = url.and_then(fixed_worker);
        let workers = self.workers.clone().map(|range| (*range.start(), *range.end()));
        let mut info = self.info.clone();
        info.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        info.insert("pid".into(), std::process::id().to_string());
        info.insert("host".into(), host());
        Setup {
            timing: if fixed.is_some() { fixed_timing(&self.layout) } else { self.timing },
            layout: layout_mark(&self.layout),
            workers: fixed.map(|number| (number, number)).or(workers),
            last_worker: last_worker(&self.layout),
            first_use: self.first_use.unwrap_or_else(|| first_use(url)),
            holder: holder.to_owned(),
            info,
            favourite: None,
        }
    }
}

/// The last worker of the largest pool that a layout has room for.
pub(crate) fn last_worker(layout: &Layout) -> u32 {
    u32::try_from(layout.last_worker()).unwrap_or(u32::MAX).min(POOL_MAX - 1)
}

/// What a namespace's meta record says of a layout.
#[must_use]
pub fn layout_mark(layout: &Layout) -> String {
    format!("{:016x} {layout}", layout.fingerprint())
}

/// Waits until every lane has a worker, as long as there is hope within the time given.
async fn wait_for_workers(
    node: &Node,
    patience: Duration,
    tell: impl Fn(&LeaseState),
) -> Result<(), StartError> {
    let mut statuses = node.watch();
    let deadline = boot_time().saturating_add(patience);
    loop {
        let seen = statuses.borrow_and_update().clone();
        let mut waiting = None;
        for status in &seen {
            match &status.state {
                LeaseState::Held | LeaseState::Unrenewed | LeaseState::Distrusted(_) => {}
                LeaseState::Refused(refusal) => return Err(StartError::Refused(refusal.clone())),
                LeaseState::Seeking(why) | LeaseState::Replacing(_, why) => {
                    tell(&status.state);
                    waiting = Some(why.clone());
                }
                LeaseState::Released => waiting = Some(Waiting::Answer),
            }
        }
        let Some(why) = waiting else { return Ok(()) };
        let left = deadline.saturating_sub(boot_time());
        if left.is_zero() || is_hopeless(&why, left, node.shared.clock.real_ms()) {
            let trouble = seen.into_iter().find_map(|status| status.trouble);
            return Err(trouble.map_or(StartError::NoWorker(why), StartError::Store));
        }
        // A time-out is looked at above; without senders nothing changes any more.
        if let Ok(Err(_)) = tokio::time::timeout(left, statuses.changed()).await {
            return Err(StartError::NoWorker(why));
        }
    }
}

/// Whether what is waited for is known not to come in time.
fn is_hopeless(why: &Waiting, left: Duration, now: UnixMs) -> bool {
    let in_time = now.saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
    match why {
        Waiting::Answer | Waiting::Store(_) | Waiting::Settling(_) => false,
        Waiting::Quarantine { until } => *until > in_time,
        // Whoever holds a worker may release it at any moment, and a pool in which nothing was
        // counted was changing while it was looked at.
        Waiting::Pool(census) => {
            let is_stuck = census.held == 0 && census.blocked + census.poisoned > 0;
            is_stuck && census.next_floor.is_none_or(|floor| floor > in_time)
        }
        Waiting::WrongTimes { .. } | Waiting::Clock(_) => true,
    }
}

fn check_faults(node: &Node) -> Result<(), StartError> {
    match node.shared.lanes.fault() {
        Some(fault) => Err(StartError::Options(fault)),
        None => Ok(()),
    }
}

fn default_holder() -> String {
    format!("{}:{}", host(), std::process::id())
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
