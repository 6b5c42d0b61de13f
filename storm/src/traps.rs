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
use crate::scenarios::{directory_removed, leader, redis_loss, unequal_heartbeats, wiped_twice};
use crate::store::Kind;

/// A mutant, and where it is caught.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MutantTrap {
    /// As `STORM_MUTANT` names it.
    pub(crate) mutant: &'static str,
    pub(crate) store: Kind,
    pub(crate) trap: &'static Scenario,
    /// What it must be caught by: one of these. A node that is merely slow or dies is not caught.
    pub(crate) oracles: &'static [&'static str],
}

/// Two holders at a time: seen in their ticks, or in an ID that came twice.
const TWO_HOLDERS: &[&str] = &["unique", "tenure"];

const fn mutant_trap(
    mutant: &'static str,
    store: Kind,
    trap: &'static Scenario,
    oracles: &'static [&'static str],
) -> MutantTrap {
    MutantTrap { mutant, store, trap, oracles }
}

/// Every mutant, and the one of the rig.
pub(crate) const HUNTS: &[MutantTrap] = &[
    mutant_trap("no-horizon", Kind::Redis, &leases::CUT, TWO_HOLDERS),
    mutant_trap("raise-on-send", Kind::Etcd, &leases::CUT, TWO_HOLDERS),
    mutant_trap("horizon-in-lease", Kind::Redis, &leases::LONG_CUT, TWO_HOLDERS),
    mutant_trap("start-at-clock", Kind::Zk, &leases::FREEZE, TWO_HOLDERS),
    mutant_trap("extend-without-token", Kind::Redis, &leases::FREEZE, TWO_HOLDERS),
    mutant_trap("reacquire-by-name", Kind::Redis, &leases::NAMESAKE, &["unique", "token"]),
    mutant_trap("release-before-close", Kind::Etcd, &leases::DRAIN, TWO_HOLDERS),
    mutant_trap("resume-after-release", Kind::Redis, &leases::DRAIN, TWO_HOLDERS),
    mutant_trap("forget-quarantine", Kind::Redis, &leases::AMNESIA, TWO_HOLDERS),
    mutant_trap("unfenced-tokens", Kind::Redis, &leases::KILL, &["token"]),
    mutant_trap("no-last-tick", Kind::File, &issuing::CLOCK_BACK, &["unique", "order"]),
    mutant_trap("sequence-overflow", Kind::File, &issuing::FLOOD, &["unique"]),
    mutant_trap("json-number", Kind::File, &json::TRAP, &["unique"]),
    mutant_trap("stale-leader", Kind::Redis, &leader::ROW, &["belief"]),
    mutant_trap(leader::BLIND_REGISTER, Kind::Redis, &leader::ROW, &["fence"]),
    mutant_trap("take-if-free", Kind::Etcd, &churn::TRAP, &["tenure", "token"]),
    mutant_trap("no-watchdog", Kind::File, &directory_removed::ROW, TWO_HOLDERS),
    mutant_trap("own-heartbeat-wait", Kind::Redis, &unequal_heartbeats::ROW, TWO_HOLDERS),
    mutant_trap("no-incarnation", Kind::Etcd, &wiped_twice::ROW, TWO_HOLDERS),
    mutant_trap("no-history-floor", Kind::Redis, &redis_loss::cut_off::TRAP, TWO_HOLDERS),
];

/// The control of all: a protocol that many examples have, which must show duplicates.
pub(crate) const NAIVE: &Scenario = &naive_nodes::TRAP;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_patch_is_a_mutant_that_is_hunted_and_no_other_is() {
        let patches = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants").read_dir().unwrap();
        let files = patches.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = files.filter_map(|file| file.strip_suffix(".patch").map(ToOwned::to_owned));
        let known: BTreeSet<String> = names.filter(|name| name != "base").collect();
        let hunted = HUNTS.iter().map(|mutant_trap| mutant_trap.mutant.to_owned());
        let hunted: BTreeSet<String> =
            hunted.filter(|name| name != leader::BLIND_REGISTER).collect();
        assert_eq!(known, hunted);
    }
}
