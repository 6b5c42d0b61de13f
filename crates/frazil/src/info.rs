//! The description that a node gives of itself.

use std::time::Duration;

use frazil_coord::{Guarantees, Namespace};
use frazil_coord::{LeaseState, LeaseStatus, Pool};
use frazil_id::Layout;

use crate::clock::Steps;

/// A node at a moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeInfo {
    /// The namespace that it leases workers from.
    pub namespace: Namespace,
    /// The layout of its IDs.
    pub layout: Layout,
    /// The store's URL, without secrets.
    pub store: String,
    /// What the store promises.
    pub guarantees: Guarantees,
    /// How it is called in the store.
    pub holder: String,
    /// Its lanes.
    pub lanes: Vec<LaneInfo>,
    /// The steps that its clock made.
    pub clock_steps: Steps,
}

/// A lane at a moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneInfo {
    /// How its lease is doing.
    pub status: LeaseStatus,
    /// How long it can go on issuing without the store.
    pub left: Duration,
}

impl NodeInfo {
    /// What somebody should look at before it becomes a failure, each in a sentence: what weakens
    /// the store's promises, and a pool that fills up.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.guarantees.warnings.clone();
        // All lanes have the same pool.
        let pool = self.lanes.iter().find_map(|lane| lane.status.pool);
        if let Some(pool) = pool.filter(Pool::is_crowded) {
            warnings.push(format!("{pool}: stop nodes that are not needed, or run fewer lanes"));
        }
        warnings
    }

    /// The workers that it holds, sorted.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        let mut workers: Vec<_> = self.lanes.iter().filter_map(LaneInfo::worker).collect();
        workers.sort_unstable();
        workers
    }

    /// How long the node can go on issuing without the store: as long as its best lane.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.lanes.iter().map(|lane| lane.left).max().unwrap_or_default()
    }
}

impl LaneInfo {
    /// The worker that it holds, as far as it knows.
    #[must_use]
    pub fn worker(&self) -> Option<u32> {
        held_worker(&self.status)
    }
}

/// The worker that a lease holds. One that was lost may be used for a while, but is not held.
pub(crate) fn held_worker(status: &LeaseStatus) -> Option<u32> {
    let is_held = matches!(
        status.state,
        LeaseState::Held | LeaseState::Unrenewed | LeaseState::Distrusted(_)
    );
    status.grant.filter(|_| is_held).map(|grant| grant.worker)
}

#[cfg(test)]
mod tests {
    use frazil_coord::{Census, Strength};

    use super::*;

    fn info(held: u32) -> NodeInfo {
        let pool = Some(Pool { size: 4, census: Census { held, ..Census::default() } });
        let mut status = LeaseStatus::at_first();
        status.pool = pool;
        let lane = LaneInfo { status, left: Duration::ZERO };
        NodeInfo {
            namespace: Namespace::default(),
            layout: Layout::FRAZIL,
            store: "memory:".into(),
            guarantees: {
                let mut guarantees = Guarantees::new("", Strength::Conditional);
                guarantees.warnings.push("one".into());
                guarantees
            },
            holder: "me".into(),
            lanes: vec![lane.clone(), lane],
            clock_steps: Steps::default(),
        }
    }

    #[test]
    fn a_crowded_pool_is_warned_about_once() {
        assert_eq!(info(2).warnings(), ["one"]);
        let crowded = info(3).warnings();
        assert_eq!(crowded.len(), 2);
        assert!(crowded[1].starts_with("of 4 workers 3 are held"), "{crowded:?}");
    }
}
