//! E04: a node is killed, its clock is set back, and it is started again with the same name.
//!
//! There is no worker but those of the three nodes, so that it must come back to one whose horizon
//! is in its future. That this is what it waits for is what it must say: any other refusal, such as
//! that of a node that has not reached its store yet, shows nothing.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::history::{Outcome, RequestRecord};
use crate::load::Pressure;
use crate::node::Node;
use crate::scenario::{Play, Scenario, was_mixed, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;
use crate::verdict::Verdict;

const CYCLES: u32 = 20;
const STEPS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(60)];
const LASTS: Duration = Duration::from_secs(2);
/// No worker that may be used yet, or a clock that is too far from others to be given one.
const REASONS: [&str; 2] = ["NO_WORKER", "CLOCK_UNTRUSTED"];

pub(crate) const ROW: Scenario = Scenario {
    id: "E04",
    title: "the clock set back across a crash",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants { workers: 3, pressure: Pressure::mixed(), ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut behind, mut waits, mut slowest) = (0, 0, Duration::ZERO);
    let cycles = stage.cycles(CYCLES).max(2);
    for cycle in 0..cycles {
        if !stage.goes_on() {
            break;
        }
        let victim = stage.random.usize(0..stage.nodes.len());
        let step = STEPS[cycle as usize % STEPS.len()];
        let begin = clock::now();
        stage.nodes[victim].daemon.kill();
        let killed = clock::now();
        stage.nodes[victim].clock.set_back(step)?;
        stage.nodes[victim].start()?;
        stage.rest(LASTS);
        behind += u64::from(is_behind(&stage.nodes[victim], step)?);
        waits += u64::from(waits_for_its_clock(&stage.nodes[victim].info()?));
        let marks = stage.load.record.between(victim, killed, clock::now());
        check_answers(&marks, &mut stage.verdict);
        stage.record_fault(format!("SIGKILL, clock -{} s", step.as_secs()), Some(victim), begin);
        // Killed again: one that runs believes a clock that jumps ahead only after a minute.
        stage.nodes[victim].daemon.kill();
        stage.nodes[victim].clock.set_right()?;
        let right = clock::now();
        stage.nodes[victim].start()?;
        slowest = slowest.max(stage.recovery(victim, right, Duration::from_secs(60))?);
    }
    stage.verdict.guard("clocks that are behind, by the node's word", behind, cycles.into());
    stage.verdict.guard("nodes that say that they wait for their clock", waits, cycles.into());
    // The horizon of the crashed tenure has to pass, less the two seconds that one may run ahead.
    let allowed = stage.lease.budget + Duration::from_secs(1);
    stage.verdict.bar("start with a clock that is right to first ID", slowest, allowed);
    Ok(())
}

/// Whether a node's clock shows a time that is so much behind, to a second.
fn is_behind(node: &Node, step: Duration) -> io::Result<bool> {
    let behind_ms = clock::unix_ms() - node.clock_unix_ms()?;
    let step_ms = i64::try_from(step.as_millis()).map_err(io::Error::other)?;
    Ok(behind_ms.abs_diff(step_ms) < 1000)
}

/// Whether a node says that it has no worker because its clock is behind: what is left is not to be used before a
/// time that it does not show yet, or, where the store has a clock, it is too far behind that one.
fn waits_for_its_clock(info: &serde_json::Value) -> bool {
    let lane = &info["lanes"][0];
    let detail = lane["detail"].as_str().unwrap_or_default();
    let mut parts = detail.split([',', ':']).map(str::trim);
    let resting = parts.find_map(|part| part.strip_suffix(" not to be used again yet"));
    let is_resting = resting.is_some_and(|count| count.parse::<u64>().is_ok_and(|n| n > 0));
    let is_behind =
        detail.contains("this machine's clock") && detail.ends_with("behind the store's");
    lane["worker"].is_null() && (is_resting || is_behind)
}

/// While its clock is behind the node has no worker to issue with, and says so.
fn check_answers(marks: &[RequestRecord], verdict: &mut Verdict) {
    let ids: u64 = marks.iter().map(RequestRecord::ids).sum();
    verdict.hold("nothing while the clock is behind", ids == 0, || format!("{ids} IDs"));
    let strange = marks.iter().find(
        |mark| matches!(&mark.outcome, Outcome::Refused(reason) if !REASONS.contains(&&**reason)),
    );
    verdict.hold("refused for its reason", strange.is_none(), || format!("{strange:?}"));
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    was_mixed(outcomes);
    let kills = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + kills);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_waits_for_its_clock_only_if_it_says_so() {
        let waits = |worker: serde_json::Value, detail: &str| {
            waits_for_its_clock(&json!({ "lanes": [{ "worker": worker, "detail": detail }] }))
        };
        let text = |count: u32| {
            format!(
                "no worker yet, waiting for a free worker: 2 held, {count} not to be used again yet, \
                 0 poisoned"
            )
        };
        assert!(waits(json!(null), &text(1)));
        assert!(!waits(json!(null), &text(0)));
        assert!(!waits(json!(7), &text(1)));
        let behind = "no worker yet, waiting for this machine's clock, 9996 ms behind the store's";
        assert!(waits(json!(null), behind) && !waits(json!(7), behind));
        assert!(!waits(json!(null), "no worker yet, waiting for the store's answer"));
        assert!(!waits_for_its_clock(&json!({})));
    }

    #[test]
    fn ids_and_other_reasons_are_found() {
        let found = |outcome: Outcome| {
            let mark = RequestRecord { asked: Duration::ZERO, answered: Duration::ZERO, outcome };
            let mut verdict = Verdict::default();
            check_answers(&[mark], &mut verdict);
            verdict.finding_count
        };
        assert_eq!(found(Outcome::Lost), 0);
        assert_eq!(found(Outcome::Refused("NO_WORKER".to_owned())), 0);
        assert_eq!(found(Outcome::Refused("INTERNAL".to_owned())), 1);
        assert_eq!(found(Outcome::Refused("HORIZON_REACHED".to_owned())), 1);
        assert_eq!(found(Outcome::Ids(1)), 1);
    }
}
