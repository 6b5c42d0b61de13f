//! The node in elections: for its strict scopes, and for what one node of a cluster does for all.
//!
//! It has a client of the store of its own: where presence is that of a session, the session lasts
//! no longer than a leader may be silent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use frazil::Node;
use frazil::coord::internal::time::{boot_time, unix_ms};
use frazil::coord::{Group, Namespace, Scheme, Slot, StoreUrl};
use frazil::election::{Candidate, Clock, Elections, LeaderInfo, Observer, Settings};
use frazil_wire::words::instant;
use frazil_wire::{ApiError, Election, Reason};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::{BindError, Shared};
use crate::cluster::scopes::{self, ADVERTISE, Leader, StrictScope};
use crate::cluster::tasks;
use crate::config::Config;
use crate::issuer::Scope;
use crate::node::condition::Condition;
use crate::node::open;

/// The election of the node that does what is done once in a cluster.
pub(crate) const CLUSTER: &str = "frazil:cluster";
/// Before the name of a scope where it is shown among elections.
const SCOPE_LABEL: &str = "scope:";
/// The longest window of a scope: what a new leader may have to wait for.
const WINDOW_MAX: Duration = Duration::from_secs(3);
/// Between two renewals of a scope's leader.
const SCOPE_HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a server that goes waits for the store to know that it has resigned.
const RESIGNING_MAX: Duration = Duration::from_secs(5);
/// The store is listed at most this often, however many ask.
const FRESH: Duration = Duration::from_millis(500);
/// When to ask again for what the store did not tell.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The elections of a node: who leads them, and whether it is this node.
#[derive(Debug)]
pub(crate) struct NodeElections {
    /// `None`: the store is this node's alone, and nobody is elected.
    config: Option<ElectionConfig>,
    elections: OnceLock<Elections>,
    /// When the store was looked at for those who ask, and what was seen.
    looked: Mutex<Option<(Duration, Vec<Election>)>>,
    /// The cluster's first, then one for each strict scope.
    stats: Vec<Arc<ElectionStats>>,
    /// Set once all that was led is given back.
    resigned: CancellationToken,
}

/// How a node takes part.
#[derive(Clone, Debug)]
struct ElectionConfig {
    url: StoreUrl,
    namespace: Namespace,
    settings: Settings,
}

/// One election, for the metrics.
#[derive(Debug)]
pub(crate) struct ElectionStats {
    /// How it is called there.
    pub(crate) label: String,
    /// By what this node takes part in it, once it does.
    candidate: OnceLock<Candidate>,
    leads: AtomicBool,
    transitions: AtomicU64,
}

impl NodeElections {
    /// What a configuration says of elections. `address`: where other nodes reach this one.
    pub(crate) fn new(config: &Config, address: Option<String>) -> Result<Self, BindError> {
        let url = config.node.store_to_open().map_err(BindError::Node)?;
        let is_alone = matches!(url.scheme, Scheme::Memory | Scheme::Static);
        let strict = || config.scopes.iter().filter(|scope| scope.is_strict());
        if strict().next().is_some() {
            for problem in
                crate::config::rules::strict_scopes(config, Some(&url), address.is_some())
            {
                if let crate::ConfigError::Bind(error) = problem.error {
                    return Err(error);
                }
            }
        }
        let settings = settings(config, address);
        for settings in [&settings, &for_scopes(&settings)] {
            settings.checked().map_err(BindError::ElectionTtl)?;
        }
        let labels = strict().map(|scope| format!("{SCOPE_LABEL}{}", scope.name));
        let labels = std::iter::once(CLUSTER.to_owned()).chain(labels);
        let namespace = config.node.chosen_namespace().clone();
        Ok(Self {
            config: (!is_alone).then_some(ElectionConfig { url, namespace, settings }),
            elections: OnceLock::new(),
            looked: Mutex::default(),
            stats: labels.map(|label| Arc::new(ElectionStats::new(label))).collect(),
            resigned: CancellationToken::new(),
        })
    }

    /// Every election of the namespace, as the store has it.
    pub(crate) async fn all(&self, instance: &str) -> Result<Vec<Election>, ApiError> {
        if self.config.is_none() {
            return Ok(Vec::new());
        }
        let elections = self.elections.get().ok_or_else(not_open)?;
        let mut looked = self.looked.lock().await;
        if let Some((when, seen)) = &*looked
            && boot_time() <= *when + FRESH
        {
            return Ok(seen.clone());
        }
        let mut seen = Vec::new();
        for (group, prefix) in [(Group::Elections, ""), (Group::Scopes, SCOPE_LABEL)] {
            let standings = elections.list(group).await.map_err(|error| {
                ApiError::new(Reason::StoreUnavailable, error).retry_after(LOOK_AGAIN)
            })?;
            seen.extend(standings.into_iter().map(|standing| {
                let name = format!("{prefix}{}", standing.name);
                let stats = self.stats.iter().find(|stats| stats.label == name);
                let leader = standing.leader;
                let is_led_by = |leader| stats.is_some_and(|stats| stats.is_led_by(leader));
                let is_leader = leader.as_ref().is_some_and(is_led_by);
                let mut election = Election::new(name);
                election.is_leader = is_leader;
                election.instance_id = instance.to_owned();
                election.leader_info = leader.map(described);
                election
            }));
        }
        *looked = Some((boot_time(), seen.clone()));
        Ok(seen)
    }

    /// For the metrics: what each is called, whether this node leads it, how often its leader
    /// changed.
    pub(crate) fn counts(&self) -> Vec<(&str, bool, u64)> {
        // Relaxed: statistics.
        let count = |stats: &ElectionStats| {
            (stats.leads.load(Ordering::Relaxed), stats.transitions.load(Ordering::Relaxed))
        };
        let counted = self.stats.iter().map(|stats| (stats.label.as_str(), count(stats)));
        counted.map(|(label, (leads, transitions))| (label, leads, transitions)).collect()
    }

    /// Waits until all that was led is given back, if that takes no longer than it may.
    pub(crate) async fn resigned(&self) {
        if self.config.is_some()
            && tokio::time::timeout(RESIGNING_MAX, self.resigned.cancelled()).await.is_err()
        {
            tracing::warn!(
                "could not resign in the store in time: other nodes take over after the TTL"
            );
        }
    }
}

impl ElectionStats {
    const fn new(label: String) -> Self {
        let (leads, transitions) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { label, candidate: OnceLock::new(), leads, transitions }
    }

    /// Notes whether this node leads.
    pub(crate) fn lead(&self, leads: bool) {
        // Relaxed, here and below: statistics.
        self.leads.store(leads, Ordering::Relaxed);
    }

    /// Whether this node is that leader, and not another of its name.
    fn is_led_by(&self, leader: &LeaderInfo) -> bool {
        self.candidate.get().is_some_and(|candidate| candidate.is(leader))
    }

    fn changed(&self) {
        self.transitions.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes part in the elections until the server goes, and then resigns. It goes on following
/// leaders, so that what is asked for in the meantime is forwarded, and never ends by itself.
pub(crate) async fn run(shared: Arc<Shared>, condition: watch::Receiver<Condition>) {
    let node_elections = &shared.node_elections;
    let Some(config) = node_elections.config.clone() else { return };
    let opening = shared.shutdown.draining.run_until_cancelled(opened(&config));
    let Some(elections) = opening.await else { return node_elections.resigned.cancel() };
    let elections = node_elections.elections.get_or_init(|| elections);
    let (mut leading, mut following) = (JoinSet::new(), JoinSet::new());
    let mut stats = node_elections.stats.iter();
    if let Some((stats, candidate)) =
        stats.next().zip(candidate(elections, Group::Elections, CLUSTER, &config.settings))
    {
        following.spawn(follow(candidate.clone(), stats.clone(), None));
        leading.spawn(tasks::lead(shared.clone(), candidate, stats.clone(), condition.clone()));
    }
    let settings = for_scopes(&config.settings).with_clock(clock(&shared));
    for (stats, strict) in stats.zip(shared.scopes.strict()) {
        let Some(candidate) = candidate(elections, Group::Scopes, &strict.name, &settings) else {
            continue;
        };
        following.spawn(follow(candidate.clone(), stats.clone(), Some(strict.clone())));
        let (shared, strict, condition) = (shared.clone(), strict.clone(), condition.clone());
        leading.spawn(scopes::lead(shared, strict, candidate, stats.clone(), condition));
    }
    for (scope, name) in shared.scopes.plain() {
        let Ok(slot) = Slot::named(Group::Scopes, name) else { continue };
        following.spawn(dispute(shared.clone(), elections.observe_slot(slot), scope));
    }
    while leading.join_next().await.is_some() {}
    node_elections.resigned.cancel();
    while following.join_next().await.is_some() {}
}

/// The store, however long it takes to appear.
async fn opened(config: &ElectionConfig) -> Elections {
    loop {
        match Elections::open(&config.url, &config.namespace, &config.settings).await {
            Ok(elections) => return elections,
            // The node says what is wrong with its store.
            Err(error) => {
                tracing::debug!(error = %format_args!("{error:#}"), "the store cannot be opened for elections yet")
            }
        }
        tokio::time::sleep(open::RETRY).await;
    }
}

fn candidate(
    elections: &Elections,
    group: Group,
    name: &str,
    settings: &Settings,
) -> Option<Candidate> {
    let slot = Slot::named(group, name).ok()?;
    let candidate = elections.candidate_for(slot, settings.clone());
    // Names and settings were looked at before the server began.
    candidate
        .inspect_err(|error| tracing::error!(error = %format_args!("{error:#}"), name, "cannot take part in an election"))
        .ok()
}

/// Notes who leads.
async fn follow(candidate: Candidate, stats: Arc<ElectionStats>, strict: Option<Arc<StrictScope>>) {
    let mut observer = candidate.observe();
    stats.candidate.get_or_init(|| candidate.clone());
    loop {
        let leader = observer.changed().await;
        if leader.is_some() {
            stats.changed();
        }
        if let Some(strict) = &strict {
            strict.note_leader(leader.map(|leader| Leader::of(leader, &candidate)));
        }
    }
}

/// Notes who leads a scope that is plain on this node: others have declared it strict.
async fn dispute(shared: Arc<Shared>, mut observer: Observer, scope: Scope) {
    loop {
        let leader = observer.changed().await.map(|leader| leader.instance);
        let name = shared.scopes.name(scope);
        if let Some(leader) = &leader {
            tracing::warn!(
                scope = name,
                leader,
                "the scope is plain on this node and strict on another: it is refused here until \
                 both say the same"
            );
        }
        shared.issuer.dispute(scope, leader);
    }
}

fn settings(config: &Config, address: Option<String>) -> Settings {
    let ttl = config.election_ttl;
    Settings::default()
        .with_ttl(ttl)
        .with_retry((ttl / 5).max(Duration::from_millis(100)))
        // A task that two nodes run at a time is done twice, and that is all.
        .with_lock_delay(Duration::ZERO)
        .with_instance(&*config.name)
        .with_metadata(address.map(|at| (ADVERTISE.to_owned(), at)).into_iter().collect())
}

/// Leaders of scopes also lease times; the horizon fences what they issue.
fn for_scopes(settings: &Settings) -> Settings {
    let heartbeat = SCOPE_HEARTBEAT.min(settings.heartbeat);
    let window = Some(WINDOW_MAX.min(settings.ttl));
    settings.clone().with_heartbeat(heartbeat).with_window(window)
}

/// The clock that the node's IDs are stamped by: a scope's times are theirs.
fn clock(shared: &Arc<Shared>) -> Clock {
    let shared = Arc::downgrade(shared);
    Clock::new(move || {
        let now = shared.upgrade().and_then(|shared| shared.issuer.node().map(Node::now_ms));
        now.unwrap_or_else(unix_ms)
    })
}

fn described(leader: LeaderInfo) -> frazil_wire::Leader {
    let mut described = frazil_wire::Leader::new(leader.token.0);
    described.instance = leader.instance;
    described.host = leader.host;
    described.pid = leader.pid;
    described.version = leader.version;
    described.elected = instant(leader.elected_ms);
    described.renewed = instant(leader.renewed_ms);
    described.metadata = leader.metadata;
    described
}

fn not_open() -> ApiError {
    ApiError::new(Reason::StoreUnavailable, "the store has not been reached yet")
        .retry_after(LOOK_AGAIN)
}
