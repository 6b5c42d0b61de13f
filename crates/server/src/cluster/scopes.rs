//! Scopes: plain ones are labels, strict ones have one leader in the cluster that issues their IDs.
//!
//! A strict scope is a slot of the store. Whoever holds it leads the scope: it issues the scope's
//! IDs under the slot's floor and horizon, and everybody else forwards to it.

mod declared;
mod forward;
mod issue;
mod lead;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use frazil::Strict;
use frazil::coord::Token;
use frazil::election::{Candidate, LeaderInfo, Proof};
use frazil_wire::{ScopeInfo, ScopeLeader, printable};
use tokio::sync::watch;

pub(crate) use self::declared::SCOPES_MAX;
pub use self::declared::{DeclaredScope, check_scopes};
use self::forward::{Forwarder, Forwards};
pub(crate) use self::issue::{Origin, issue};
pub(crate) use self::lead::lead;
use crate::cluster::peers::{Peers, PeersError};
use crate::config::Config;
use crate::issuer::Scope;
use crate::policy::queue::Queue;

/// The declared scopes, and how this node stands to the strict ones.
#[derive(Debug)]
pub(crate) struct Scopes {
    /// As they were declared; a [`Scope`] is a place in it.
    declared: Vec<DeclaredScope>,
    /// Those that are strict.
    strict: Vec<Option<Arc<StrictScope>>>,
    forwarder: Arc<Forwarder>,
}

/// A strict scope, as this node stands to it.
#[derive(Debug)]
pub(crate) struct StrictScope {
    pub(crate) name: String,
    /// What issues its IDs while this node leads it.
    local_issuer: ArcSwapOption<Strict<Proof>>,
    /// Who leads it, as the store has it. Also told when the local issuer changes.
    leader: watch::Sender<Option<Leader>>,
    /// Requests to this node while it leads.
    queue: Arc<Queue>,
    /// Those that wait for the node that leads it.
    forwards: Forwards,
}

/// Who leads a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) node: String,
    pub(crate) advertise: Option<String>,
    pub(crate) token: u64,
    /// Whether it is this node, and not another of its name.
    pub(crate) is_here: bool,
}

/// What a leader says of itself so that others can forward to it.
pub(crate) const ADVERTISE: &str = "advertise";

impl Leader {
    /// Who leads a scope that this candidate of the node would lead.
    pub(crate) fn of(mut info: LeaderInfo, candidate: &Candidate) -> Self {
        let is_here = candidate.is(&info);
        // Whoever can write to the store says what it likes.
        let advertise = info.metadata.remove(ADVERTISE).as_deref().map(printable);
        Self { node: printable(&info.instance), advertise, token: info.token.0, is_here }
    }
}

impl Scopes {
    pub(crate) fn new(config: &Config) -> Result<Self, PeersError> {
        let declared = config.scopes.clone();
        let strict_scope = |scope: &DeclaredScope| {
            let queue = Queue::new(*config.node.chosen_layout(), config.limits.max_waiting);
            scope.is_strict().then(|| Arc::new(StrictScope::new(scope.name.clone(), queue)))
        };
        let strict = declared.iter().map(strict_scope).collect();
        Ok(Self { declared, strict, forwarder: Arc::new(Forwarder::new(config)?) })
    }

    /// How other nodes are asked.
    pub(crate) fn peers(&self) -> &Peers {
        &self.forwarder.peers
    }

    /// A scope's name.
    pub(crate) fn name(&self, scope: Scope) -> &str {
        &self.declared[scope.0].name
    }

    /// The plain ones, with their names.
    pub(crate) fn plain(&self) -> impl Iterator<Item = (Scope, &str)> {
        let places = self.declared.iter().enumerate();
        places.filter(|(_, scope)| !scope.is_strict()).map(|(at, scope)| (Scope(at), &*scope.name))
    }

    /// The strict ones.
    pub(crate) fn strict(&self) -> impl Iterator<Item = &Arc<StrictScope>> {
        self.strict.iter().flatten()
    }

    fn find_strict(&self, scope: Scope) -> Option<&Arc<StrictScope>> {
        self.strict[scope.0].as_ref()
    }

    /// The token that this node leads a scope with, if it does.
    pub(crate) fn leader_token(&self, name: &str) -> Option<Token> {
        let strict = self.strict().find(|strict| strict.name == name)?;
        strict.local_issuer.load().as_ref().map(|issuer| issuer.authority().token())
    }

    /// What is told of them.
    pub(crate) fn infos(&self) -> Vec<ScopeInfo> {
        let info = |(scope, strict): (&DeclaredScope, &Option<Arc<StrictScope>>)| {
            let leader = strict.as_ref().and_then(|strict| strict.leader.borrow().clone());
            let mut info = ScopeInfo::new(&scope.name, scope.kind);
            info.leader = leader.map(|Leader { node, advertise, token, .. }| {
                let mut leader = ScopeLeader::new(node, token);
                leader.advertise = advertise;
                leader
            });
            info
        };
        self.declared.iter().zip(&self.strict).map(info).collect()
    }
}

impl StrictScope {
    fn new(name: String, queue: Arc<Queue>) -> Self {
        let (leader, _) = watch::channel(None);
        Self {
            name,
            local_issuer: ArcSwapOption::empty(),
            leader,
            queue,
            forwards: Forwards::default(),
        }
    }

    /// Notes who leads, as the store has it.
    pub(crate) fn note_leader(&self, leader: Option<Leader>) {
        self.leader.send_if_modified(|known| {
            let changes = *known != leader;
            *known = leader;
            changes
        });
    }

    /// Waits until another leader than the one with this token is known.
    async fn moved_on(&self, token: Option<u64>) {
        let is_other = |now: &Option<Leader>| {
            now.is_some() && now.as_ref().map(|leader| leader.token) != token
        };
        // The sender lives as long as the scope.
        let _ = self.leader.subscribe().wait_for(is_other).await;
    }

    /// Whether this node leads it.
    pub(crate) fn is_led_here(&self) -> bool {
        self.local_issuer.load().is_some()
    }

    /// Puts what issues its IDs in place, or takes it away.
    fn set_local_issuer(&self, issuer: Option<Arc<Strict<Proof>>>) {
        self.local_issuer.store(issuer);
        // Whoever waits for a leader looks again.
        self.leader.send_modify(|_| {});
    }
}
