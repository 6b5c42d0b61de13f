//! E49: a node with a clock that is a day ahead crashes again and again beside four nodes whose clocks
//! are right. It spoils a worker or two at most, and no ID is from the future.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use super::crash_loop::workers;
use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const WORKERS: u64 = 32;
const LOOPER: usize = 4;
const DAY: Duration = Duration::from_secs(86_400);
const CRASHES: u32 = 40;
const CRASHES_MIN: u32 = 12;
/// It may never issue, and should not.
const LIVES: Duration = Duration::from_secs(1);
const SPOILED_MAX: u64 = 2;

pub(crate) const ROW: Scenario = Scenario {
    id: "E49",
    title: "crashes with a clock a day ahead",
    stores: &[Kind::Etcd],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants { nodes: 5, late: 1, workers: WORKERS, ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    stage.nodes[LOOPER].clock.set_ahead(DAY)?;
    let begin = clock::now();
    let mut ahead = 0;
    let crashes = stage.cycles(CRASHES).max(CRASHES_MIN);
    for _ in 0..crashes {
        stage.nodes[LOOPER].start()?;
        let launched = clock::now();
        let shown = stage.nodes[LOOPER].clock_unix_ms()?.abs_diff(clock::unix_ms());
        ahead += u64::from(u128::from(shown).abs_diff(DAY.as_millis()) < 10_000);
        let record = &stage.load.record;
        // That it does not is no trouble.
        let _ =
            wait_until("an ID of it", LIVES, || record.first_answer(LOOPER, launched).is_some());
        stage.nodes[LOOPER].daemon.kill();
    }
    stage.record_fault("crashes with its clock a day ahead", Some(LOOPER), begin);
    // What was promised by a clock that is right has passed by then.
    clock::rest(stage.lease.budget + Duration::from_secs(2));
    let spoiled = spoiled(&workers(stage)?);
    stage.verdict.hold("few workers are spoiled", spoiled <= SPOILED_MAX, || {
        format!("{spoiled} of {WORKERS} workers are spoiled by {crashes} crashes")
    });
    stage.verdict.note("workers that it spoiled", spoiled);
    stage.verdict.guard("starts with a clock ahead, by the node's word", ahead, crashes.into());
    Ok(())
}

/// How many workers nobody can have, as `frazil store show` counts them.
fn spoiled(workers: &serde_json::Value) -> u64 {
    let states = ["poisoned", "blocked", "quarantined", "lost"];
    states.iter().filter_map(|state| workers[state].as_u64()).sum()
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_worker_that_nobody_can_have_is_spoiled() {
        assert_eq!(spoiled(&json!({ "never_used": 27, "held": 4, "free": 1 })), 0);
        assert_eq!(spoiled(&json!({ "held": 4, "poisoned": 2, "blocked": 1, "lost": 1 })), 4);
    }
}
