//! The experiments: what is played, on which stores, and what must be seen.

use std::io;

use crate::scenarios;
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

/// One row of the scorecard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// `E02`.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) stores: &'static [Kind],
    pub(crate) play: Play,
}

/// How a row is played.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Play {
    /// Nodes under load, and faults: what all such rows share is done for them.
    Nodes {
        cast: fn(&Plan) -> Cast,
        act: fn(&mut Stage) -> io::Result<()>,
        /// What must be seen in the end.
        judge: fn(&Plan, &mut Outcomes),
    },
    /// A row with a stage of its own.
    Own(fn(&Plan) -> io::Result<Outcomes>),
}

/// Every row, by number.
pub(crate) const ALL: &[Scenario] = &[
    scenarios::pause::ROW,
    scenarios::clock_back::ROW,
    scenarios::clock_crash::ROW,
    scenarios::kill::ROW,
    scenarios::partition::ROW,
    scenarios::volume::ROW,
    scenarios::amnesia::ROW,
    scenarios::leader::ROW,
    scenarios::hostile_count::ROW,
    scenarios::outage::ROW,
    scenarios::etcd_leader::ROW,
    scenarios::failover::ROW,
    scenarios::snapshot::ROW,
    scenarios::store_clock::ROW,
    scenarios::eviction::ROW,
    scenarios::lost_keys::ROW,
    scenarios::clock_forward::ROW,
    scenarios::strobe::ROW,
    scenarios::herd::ROW,
    scenarios::pool::ROW,
    scenarios::rolling::ROW,
    scenarios::jobs::ROW,
    scenarios::time_edge::ROW,
    scenarios::exhaustion::ROW,
    scenarios::lost_replies::ROW,
];

/// The row with an id.
pub(crate) fn named(id: &str) -> Result<&'static Scenario, String> {
    ALL.iter().find(|row| row.id.eq_ignore_ascii_case(id)).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|row| row.id).collect();
        format!("no scenario `{id}`: {}", known.join(", "))
    })
}

impl Scenario {
    /// Plays it.
    pub(crate) fn run(&self, plan: &Plan) -> io::Result<Outcomes> {
        match self.play {
            Play::Own(run) => run(plan),
            Play::Nodes { cast, act, judge } => {
                let mut stage = Stage::open(plan, &cast(plan))?;
                let acted = act(&mut stage);
                // What was caught is worth more than what went wrong afterwards.
                if stage.goes_on() {
                    acted?;
                }
                let mut outcomes = stage.close()?;
                if outcomes.verdict.finding_count == 0 {
                    judge(plan, &mut outcomes);
                }
                Ok(outcomes)
            }
        }
    }
}

/// What every row with nodes must have seen to count: enough Ids, and while faults lasted enough of
/// nodes that they were not done to, in each of them some.
pub(crate) fn was_worth_it(plan: &Plan, outcomes: &mut Outcomes) {
    // The experiment's million, for as much of it as was played; never fewer than this.
    let least = 100_000;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let needed = ((1e6 * plan.scale) as u64).clamp(least, 1_000_000);
    outcomes.verdict.guard("Ids", outcomes.counts.ids, needed);
    let spared: Vec<u64> = outcomes.ids_in_faults.iter().filter_map(|ids| ids.spared).collect();
    outcomes.verdict.guard("Ids of other nodes while faults lasted", spared.iter().sum(), 1000);
    not_silent("faults in which other nodes gave Ids", &spared, outcomes);
}

/// What rows must have seen in which a node goes on although something is done to it, every time.
pub(crate) fn went_on(outcomes: &mut Outcomes) {
    let faulted: Vec<u64> = outcomes.ids_in_faults.iter().filter_map(|ids| ids.faulted).collect();
    outcomes.verdict.guard("Ids of nodes in trouble while it lasted", faulted.iter().sum(), 1000);
    not_silent("faults in which the node in trouble gave Ids", &faulted, outcomes);
}

fn not_silent(name: &str, ids: &[u64], outcomes: &mut Outcomes) {
    let seen = ids.iter().filter(|ids| **ids > 0).count();
    outcomes.verdict.guard(name, seen as u64, ids.len() as u64);
}

/// What rows with clients of all kinds must have seen: without it the fastest path was not tried.
pub(crate) fn was_mixed(outcomes: &mut Outcomes) {
    outcomes.verdict.guard("answers over RESP", outcomes.counts.untold, 500);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::availability::IdsInFault;

    #[test]
    fn a_node_that_is_silent_in_one_of_its_faults_has_not_gone_on() {
        let passes = |faults: &[(Option<u64>, Option<u64>)]| {
            let ids_in_faults =
                faults.iter().map(|&(faulted, spared)| IdsInFault { faulted, spared }).collect();
            let mut outcomes = Outcomes { ids_in_faults, ..Outcomes::default() };
            went_on(&mut outcomes);
            outcomes.verdict.passes()
        };
        assert!(passes(&[(Some(900), None), (Some(100), Some(0)), (None, Some(7))]));
        assert!(!passes(&[(Some(9000), Some(9000)), (Some(0), Some(9000))]), "silent in one");
        assert!(!passes(&[(Some(900), Some(9000))]), "too few");
    }
}
