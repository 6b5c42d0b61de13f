//! E02: a holder is frozen for longer than its lease, and somebody else takes its worker.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_mixed, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 50;
const WORKERS: usize = 3;
/// More than twice the TTL.
const FROZEN: Duration = Duration::from_millis(2200);

pub(crate) const ROW: Scenario = Scenario {
    id: "E02",
    title: "a pause longer than the lease",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

/// One worker fewer than nodes: whoever has none takes that of the frozen one.
fn participants(_: &Plan) -> Participants {
    let pressure = Pressure::mixed();
    Participants {
        nodes: WORKERS + 1,
        workers: WORKERS as u64,
        pressure,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut frozen, mut slowest) = (0, Duration::ZERO);
    for _ in 0..stage.cycles(CYCLES) {
        if !stage.goes_on() {
            break;
        }
        let victim = stage.any_serving()?;
        let begin = clock::now();
        stage.nodes[victim].daemon.pause()?;
        frozen += u64::from(stage.nodes[victim].is_frozen());
        stage.rest(FROZEN);
        let resumed = clock::now();
        stage.nodes[victim].daemon.resume()?;
        stage.record_fault("SIGSTOP", Some(victim), begin);
        slowest = slowest.max(stage.all_serve(WORKERS, resumed)?);
    }
    stage.verdict.guard("nodes seen frozen", frozen, stage.faults.len() as u64);
    let allowed = stage.lease.ttl + Duration::from_secs(1);
    stage.verdict.bar("until all workers issue again", slowest, allowed);
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    was_mixed(outcomes);
    // On files nobody takes over: the kernel knows that the frozen process is there.
    let faults = outcomes.faults.len() as u64;
    let needed = if plan.store == Kind::File { 3 } else { 3 + faults.div_ceil(2) };
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, needed);
}
