//! The experiments: what is played, on which stores, and what must be seen.

use std::io;

use crate::availability::AnswerCounts;
use crate::scenarios;
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;
use crate::verdict::Verdict;

/// A node that serves gives more than this within any fault. One that is stopped gives fewer: what its
/// few clients had asked for when it stopped, or as it goes on.
const ANSWERS_MIN: u64 = 20;

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
        participants: fn(&Plan) -> Participants,
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
    scenarios::volume_in_faults::ROW,
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
    scenarios::redis_outage::ROW,
    scenarios::redis_outage::FAIL_OVER,
    scenarios::redis_loss::ROW,
    scenarios::wiped_twice::ROW,
    scenarios::unequal_heartbeats::ROW,
    scenarios::directory_removed::ROW,
    scenarios::scope_wiped::ROW,
    scenarios::scope_clocks::AHEAD_OF_STORE,
    scenarios::scope_clocks::RIDE,
    scenarios::scope_clocks::HOUR_AHEAD,
    scenarios::scope_clocks::ONE_NAME,
    scenarios::first_clock::ROW,
    scenarios::clock_crash_loop::ROW,
    scenarios::clock_late::ROW,
    scenarios::crash_loop::ROW,
    scenarios::rotations::ROW,
    scenarios::elect_killed::ROW,
    scenarios::lost_replica::ROW,
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
            Play::Nodes { participants, act, judge } => {
                let mut stage = Stage::open(plan, &participants(plan))?;
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

/// What every row with nodes must have seen to count: enough IDs, and while faults lasted enough of
/// nodes that they were not done to, in each of them some.
pub(crate) fn was_worth_it(plan: &Plan, outcomes: &mut Outcomes) {
    // The experiment's million, for as much of it as was played; never fewer than this.
    let least = 100_000;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let needed = ((1e6 * plan.scale) as u64).clamp(least, 1_000_000);
    outcomes.verdict.guard("IDs", outcomes.counts.ids, needed);
    let spared = outcomes.ids_in_faults.iter().filter_map(|ids| ids.spared).collect::<Vec<_>>();
    gave("other nodes", &spared, &mut outcomes.verdict);
}

/// What rows must have seen in which a node goes on although something is done to it, every time.
pub(crate) fn went_on(outcomes: &mut Outcomes) {
    let faulted = outcomes.ids_in_faults.iter().filter_map(|ids| ids.faulted).collect::<Vec<_>>();
    gave("the node in trouble", &faulted, &mut outcomes.verdict);
}

fn gave(who: &str, faults: &[AnswerCounts], verdict: &mut Verdict) {
    let ids = faults.iter().map(|given| given.ids).sum();
    verdict.guard(format!("IDs of {who} while faults lasted"), ids, 1000);
    let served = faults.iter().filter(|given| given.answers >= ANSWERS_MIN).count() as u64;
    verdict.guard(format!("faults in which {who} gave IDs"), served, faults.len() as u64);
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
        let passes = |faults: &[(u64, u64)]| {
            let given = |&(answers, ids): &(u64, u64)| Some(AnswerCounts { answers, ids });
            let of_store = IdsInFault { faulted: None, spared: Some(AnswerCounts::default()) };
            let of_nodes = faults.iter().map(|f| IdsInFault { faulted: given(f), spared: None });
            let ids_in_faults = of_nodes.chain([of_store]).collect();
            let mut outcomes = Outcomes { ids_in_faults, ..Outcomes::default() };
            went_on(&mut outcomes);
            outcomes.verdict.passes()
        };
        assert!(passes(&[(100, 900), (20, 100)]));
        assert!(!passes(&[(9000, 90_000), (0, 0)]), "silent in one");
        assert!(!passes(&[(9000, 90_000), (5, 5000)]), "all but silent in one");
        assert!(!passes(&[(100, 900)]), "too few");
    }
}
