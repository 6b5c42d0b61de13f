//! What a node says of itself.

use std::time::Duration;

use frazil_coord::keeper::LeaseStatus;
use frazil_coord::{Guarantees, Namespace};
use frazil_id::Layout;

use crate::clock::Steps;

/// A node at a moment.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The namespace that it leases workers from.
    pub namespace: Namespace,
    /// The layout of its Ids.
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
pub struct LaneInfo {
    /// How its lease is doing.
    pub status: LeaseStatus,
    /// How long it can go on issuing without the store.
    pub left: Duration,
}

impl NodeInfo {
    /// How long the node can go on issuing without the store: as long as its best lane.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.lanes.iter().map(|lane| lane.left).max().unwrap_or_default()
    }
}
