//! Everything that is the case at a moment.

use std::collections::BTreeSet;

use frazil_coord::{Nonce, Record, Token, Version};

/// Two nodes, one worker, one store and the network between them. Times are in ticks, but for the
/// record, which is the store's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The time, where clocks agree.
    pub(crate) clock: u64,
    pub(crate) store: StoreState,
    pub(crate) nodes: [Node; 2],
    /// Every claim ever made, in the order of their nonces.
    pub(crate) stints: Vec<Stint>,
    /// Requests that were sent and may still arrive, again and again.
    pub(crate) network: BTreeSet<Request>,
    /// The highest token ever given.
    pub(crate) highest: Token,
    pub(crate) token_repeated: bool,
    /// What the latest step showed.
    pub(crate) note: Note,
}

/// What the store keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreState {
    pub(crate) cell: Option<Cell>,
    /// `None` once it was forgotten.
    pub(crate) meta: Option<MetaState>,
    /// What a snapshot has.
    pub(crate) copy: Option<Cell>,
    pub(crate) struck: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    pub(crate) version: Version,
    /// `None` once it was lost.
    pub(crate) record: Option<Record>,
    pub(crate) present: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MetaState {
    pub(crate) version: Version,
    pub(crate) quarantine: u64,
}

/// One process after another on a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// The stint whose times are used.
    pub(crate) using: Option<usize>,
    /// Whether the store said that it is over.
    pub(crate) lost: bool,
    /// A claim whose outcome is not known yet.
    pub(crate) claim: Option<Pending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) stint: usize,
    pub(crate) read: Version,
}

/// A tenure as its holder knows it. What was stamped stays for the properties when it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Stint {
    pub(crate) token: Token,
    pub(crate) floor: u64,
    /// As acknowledged.
    pub(crate) horizon: u64,
    pub(crate) last: u64,
    /// One bit for each tick.
    pub(crate) stamped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Request {
    Acquire { stint: usize, node: usize, read: Version, meta: MetaState, now: u64 },
    Extend { stint: usize, tenure: Token, now: u64 },
    Release { stint: usize, tenure: Token, last: u64 },
    Repair { read: Version, now: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Held {
        token: Token,
        floor: u64,
        horizon: u64,
    },
    /// Taken, full or based on another meta: nothing was acquired.
    NotNow,
    Lost,
}

/// What a step showed, so that the search is known to reach it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Note {
    #[default]
    Nothing,
    /// A holder stamped while another one had the slot and had stamped.
    StampedWhileStale,
    /// A holder held on after its presence had lapsed.
    Reattached,
    /// A claim that was repeated got the tenure that it already had.
    Repeated,
    /// A slot was taken above a quarantine or a repaired record.
    TakenAfterCalamity,
}

impl State {
    pub(crate) fn new(clock: u64) -> Self {
        let meta = MetaState { version: Version(1), quarantine: 0 };
        let store = StoreState { cell: None, meta: Some(meta), copy: None, struck: false };
        Self {
            clock,
            store,
            nodes: [Node::default(); 2],
            stints: Vec::new(),
            network: BTreeSet::new(),
            highest: Token(0),
            token_repeated: false,
            note: Note::Nothing,
        }
    }

    /// Leaves out what makes no difference any more.
    pub(crate) fn tidy(&mut self, is_loose: bool) {
        if !is_loose {
            self.drop_inert_requests();
        }
        self.renumber_versions();
    }

    /// Forgets requests that can do nothing any more and whose sender no longer cares: versions,
    /// and nonces that were replaced, do not come back but from a copy.
    fn drop_inert_requests(&mut self) {
        let Self { store, nodes, network, .. } = self;
        let cells = [Some(store.cell.as_ref()), store.copy.as_ref().map(Some)];
        let cells = || cells.into_iter().flatten();
        let is_at = |read| cells().any(|cell| cell.map_or(Version(0), |cell| cell.version) == read);
        let holds = |stint| {
            cells().any(|cell| cell.and_then(|c| c.record.as_ref()?.nonce) == Some(nonce(stint)))
        };
        network.retain(|request| match *request {
            Request::Acquire { stint, read, meta, .. } => {
                let cares = |node: &Node| node.claim.is_some_and(|claim| claim.stint == stint);
                let fits = store.meta == Some(meta) && (is_at(read) || holds(stint));
                fits || nodes.iter().any(cares)
            }
            Request::Extend { stint, .. } => {
                let cares = |node: &Node| node.using == Some(stint) && !node.lost;
                holds(stint) || nodes.iter().any(cares)
            }
            Request::Release { stint, .. } => holds(stint),
            Request::Repair { read, .. } => is_at(read),
        });
    }

    /// Numbers the versions anew in their order: only whether they are equal matters, and without
    /// this every extension would be a state of its own.
    fn renumber_versions(&mut self) {
        let mut used = BTreeSet::new();
        self.each_version(&mut |version| {
            used.insert(*version);
        });
        let ranks: Vec<Version> = used.into_iter().filter(|version| version.0 > 0).collect();
        let mut moved = BTreeSet::new();
        std::mem::swap(&mut moved, &mut self.network);
        let rank = |version: &mut Version| {
            if let Ok(index) = ranks.binary_search(version) {
                *version = Version(index as u64 + 1);
            }
        };
        self.network = moved
            .into_iter()
            .map(|mut request| {
                request.each_version(&mut |version| rank(version));
                request
            })
            .collect();
        self.each_version_outside(&mut |version| rank(version));
    }

    /// A version that no write had before.
    pub(crate) fn next_version(&mut self) -> Version {
        let mut highest = Version(0);
        self.each_version(&mut |version| highest = highest.max(*version));
        Version(highest.0 + 1)
    }

    fn each_version(&mut self, visit: &mut dyn FnMut(&mut Version)) {
        for mut request in self.network.iter().copied() {
            request.each_version(visit);
        }
        self.each_version_outside(visit);
    }

    fn each_version_outside(&mut self, visit: &mut dyn FnMut(&mut Version)) {
        for cell in [&mut self.store.cell, &mut self.store.copy].into_iter().flatten() {
            visit(&mut cell.version);
        }
        for node in &mut self.nodes {
            if let Some(claim) = &mut node.claim {
                visit(&mut claim.read);
            }
        }
    }
}

impl Request {
    /// Whether anybody waits for what is answered.
    pub(crate) const fn has_reply(&self) -> bool {
        matches!(self, Self::Acquire { .. } | Self::Extend { .. })
    }

    fn each_version(&mut self, visit: &mut dyn FnMut(&mut Version)) {
        match self {
            Self::Acquire { read, .. } | Self::Repair { read, .. } => visit(read),
            Self::Extend { .. } | Self::Release { .. } => {}
        }
    }
}

/// The nonce of a stint.
pub(crate) fn nonce(stint: usize) -> Nonce {
    Nonce::from_bits(stint as u128 + 1)
}
