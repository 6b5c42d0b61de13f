//! Scopes: plain ones are labels, strict ones have one leader in the cluster that issues their Ids.
//!
//! A strict scope is a slot of the store. Whoever holds it leads the scope: it issues the scope's
//! Ids under the slot's floor and horizon, and everybody else forwards to it.

mod declared;
mod issue;
mod lead;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arc_swap::ArcSwapOption;
use frazil::Strict;
use frazil::election::{Candidate, LeaderInfo, Proof};
use frazil_wire::{ScopeInfo, ScopeLeader};
use tokio::sync::{Semaphore, watch};

pub(crate) use self::declared::SCOPES_MAX;
pub use self::declared::{DeclaredScope, check_scopes};
pub(crate) use self::issue::{Answered, Origin, issue, issue_some};
pub(crate) use self::lead::lead;
use crate::config::Config;
use crate::issuer::Scope;
use crate::peers::{Peers, PeersError};

/// The declared scopes, and how this node stands to the strict ones.
#[derive(Debug)]
pub(crate) struct Scopes {
    /// As they were declared; a [`Scope`] is a place in it.
    declared: Vec<DeclaredScope>,
    /// Those that are strict.
    posts: Vec<Option<Arc<Post>>>,
    peers: Peers,
}

/// A strict scope, as this node stands to it.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) name: String,
    /// What issues its Ids while this node leads it.
    seat: ArcSwapOption<Strict<Proof>>,
    /// Who leads it, as the store has it. Also told when the seat changes.
    leader: watch::Sender<Option<Leader>>,
    /// For one request at a time, when the sequence is used up.
    turns: Semaphore,
    waiting: AtomicUsize,
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
        let advertise = info.metadata.remove(ADVERTISE);
        Self { node: info.instance, advertise, token: info.token.0, is_here }
    }
}

impl Scopes {
    pub(crate) fn new(config: &Config) -> Result<Self, PeersError> {
        let declared = config.scopes.clone();
        let post = |scope: &DeclaredScope| {
            scope.is_strict().then(|| Arc::new(Post::new(scope.name.clone())))
        };
        let posts = declared.iter().map(post).collect();
        Ok(Self { declared, posts, peers: Peers::new(config)? })
    }

    /// How other nodes are asked.
    pub(crate) const fn peers(&self) -> &Peers {
        &self.peers
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
    pub(crate) fn posts(&self) -> impl Iterator<Item = &Arc<Post>> {
        self.posts.iter().flatten()
    }

    fn post(&self, scope: Scope) -> Option<&Post> {
        self.posts[scope.0].as_deref()
    }

    /// What is told of them.
    pub(crate) fn infos(&self) -> Vec<ScopeInfo> {
        let info = |(scope, post): (&DeclaredScope, &Option<Arc<Post>>)| ScopeInfo {
            name: scope.name.clone(),
            kind: scope.kind,
            leader: post.as_ref().and_then(|post| post.leader.borrow().clone()).map(|leader| {
                let Leader { node, advertise, token, .. } = leader;
                ScopeLeader { node, advertise, token: token.to_string() }
            }),
        };
        self.declared.iter().zip(&self.posts).map(info).collect()
    }
}

impl Post {
    fn new(name: String) -> Self {
        let (leader, _) = watch::channel(None);
        let (seat, turns) = (ArcSwapOption::empty(), Semaphore::new(1));
        Self { name, seat, leader, turns, waiting: AtomicUsize::new(0) }
    }

    /// Notes who leads, as the store has it.
    pub(crate) fn note_leader(&self, leader: Option<Leader>) {
        self.leader.send_if_modified(|known| {
            let changes = *known != leader;
            *known = leader;
            changes
        });
    }

    /// Whether this node leads it.
    pub(crate) fn is_led_here(&self) -> bool {
        self.seat.load().is_some()
    }

    /// Puts what issues its Ids in place, or takes it away.
    fn seat(&self, strict: Option<Arc<Strict<Proof>>>) {
        self.seat.store(strict);
        // Whoever waits for a leader looks again.
        self.leader.send_modify(|_| {});
    }
}
