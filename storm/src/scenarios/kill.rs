//! E05: nodes are killed one after the other, and started again.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 40;
const EVERY: Duration = Duration::from_millis(1500);
/// Of the requests to nodes that nothing was done to.
const LOST_PER_MILLE: u64 = 1;

pub(crate) const ROW: Scenario = Scenario {
    id: "E05",
    title: "nodes killed all the time",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

/// Workers enough that those which rest after a crash are not missed.
fn participants(_: &Plan) -> Participants {
    Participants { workers: 16, ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut slowest, mut asked, mut failed) = (Duration::ZERO, 0, 0);
    for _ in 0..stage.cycles(CYCLES) {
        if !stage.goes_on() {
            break;
        }
        let victim = stage.random.usize(0..stage.nodes.len());
        let begin = clock::now();
        stage.nodes[victim].daemon.kill();
        let restarted = clock::now();
        stage.nodes[victim].launch()?;
        let took = stage.recovery(victim, restarted, Duration::from_secs(30))?;
        slowest = slowest.max(took);
        let left = EVERY.saturating_sub(clock::now() - begin);
        stage.rest(left);
        stage.record_fault("SIGKILL", Some(victim), begin);
        for other in (0..stage.nodes.len()).filter(|other| *other != victim) {
            let marks = stage.load.record.between(other, begin, clock::now());
            asked += marks.len() as u64;
            failed += marks.iter().filter(|mark| mark.ids() == 0).count() as u64;
        }
    }
    stage.verdict.bar("restart to first ID", slowest, Duration::from_millis(1500));
    stage.verdict.note("requests to the others that failed", format!("{failed} of {asked}"));
    let is_few = failed * 1000 <= asked * LOST_PER_MILLE;
    stage.verdict.hold("others are not affected", is_few, || {
        format!("{failed} of {asked} requests to nodes that nothing was done to failed")
    });
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let kills = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + kills);
}
