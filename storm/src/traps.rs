//! E01: what catches each protocol mutant. A rig that lets one pass has shown nothing about the rest.
//!
//! A trap is the smallest scene in which the broken rule shows. Each is also played with a build that
//! breaks nothing, and must then stay silent.

mod churn;
mod issuing;
mod json;
mod leases;
mod naive_nodes;

use crate::scenario::Scenario;
use crate::store::Kind;

/// A mutant, and where it is caught.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hunt {
    /// As `FRAZIL_MUTANT` names it.
    pub(crate) mutant: &'static str,
    pub(crate) store: Kind,
    pub(crate) trap: &'static Scenario,
}

const fn hunt(mutant: &'static str, store: Kind, trap: &'static Scenario) -> Hunt {
    Hunt { mutant, store, trap }
}

/// Every mutant.
pub(crate) const HUNTS: &[Hunt] = &[
    hunt("no-horizon", Kind::Redis, &leases::CUT),
    hunt("raise-on-send", Kind::Etcd, &leases::CUT),
    hunt("horizon-in-lease", Kind::Redis, &leases::LONG_CUT),
    hunt("start-at-clock", Kind::Zk, &leases::FREEZE),
    hunt("extend-without-token", Kind::Redis, &leases::FREEZE),
    hunt("reacquire-by-name", Kind::Redis, &leases::NAMESAKE),
    hunt("release-before-close", Kind::Etcd, &leases::DRAIN),
    hunt("resume-after-release", Kind::Redis, &leases::DRAIN),
    hunt("forget-quarantine", Kind::Redis, &leases::AMNESIA),
    hunt("unfenced-tokens", Kind::Redis, &leases::KILL),
    hunt("no-last-tick", Kind::File, &issuing::CLOCK_BACK),
    hunt("sequence-overflow", Kind::File, &issuing::FLOOD),
    hunt("json-number", Kind::File, &json::TRAP),
    hunt("stale-leader", Kind::Redis, &crate::scenarios::leader::ROW),
    hunt("take-if-free", Kind::Etcd, &churn::TRAP),
];

/// The control of all: a protocol that many examples have, which must show duplicates.
pub(crate) const NAIVE: &Scenario = &naive_nodes::TRAP;
