//! E04: a node is killed, its clock is set back, and it is started again with the same name.
//!
//! There is no worker but those of the three nodes, so that it must come back to one whose horizon
//! is in its future.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::history::Outcome;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_mixed, was_worth_it};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 20;
const STEPS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(60)];
const LASTS: Duration = Duration::from_secs(2);

pub(crate) const ROW: Scenario = Scenario {
    id: "E04",
    title: "the clock set back across a crash",
    stores: &Kind::ALL,
    play: Play::Nodes { cast, act, judge },
};

fn cast(_: &Plan) -> Cast {
    Cast { workers: 3, pressure: Pressure::mixed(), ..Cast::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut refused, mut slowest) = (0, Duration::ZERO);
    for cycle in 0..stage.cycles(CYCLES).max(2) {
        if !stage.goes_on() {
            break;
        }
        let victim = stage.random.usize(0..stage.nodes.len());
        let step = STEPS[cycle as usize % STEPS.len()];
        let begin = clock::now();
        stage.nodes[victim].daemon.kill();
        stage.nodes[victim].clock.set_back(step)?;
        stage.nodes[victim].start()?;
        stage.rest(LASTS);
        let marks = stage.load.record.between(victim, begin, clock::now());
        let is_refusal = |mark: &&crate::history::Mark| matches!(mark.outcome, Outcome::Refused(_));
        refused += marks.iter().filter(is_refusal).count() as u64;
        stage.was(format!("SIGKILL, clock -{} s", step.as_secs()), Some(victim), begin);
        // Killed again: one that runs believes a clock that jumps ahead only after a minute.
        stage.nodes[victim].daemon.kill();
        stage.nodes[victim].clock.set_right()?;
        let right = clock::now();
        stage.nodes[victim].start()?;
        slowest = slowest.max(stage.recovery(victim, right, Duration::from_secs(60))?);
    }
    stage.verdict.guard("requests refused while the clock was behind", refused, 1);
    // The horizon of the crashed tenure has to pass, less the two seconds that one may run ahead.
    let allowed = stage.lease.budget + Duration::from_secs(1);
    stage.verdict.bar("start with a clock that is right to first Id", slowest, allowed);
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    was_mixed(outcomes);
    let kills = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + kills);
}
