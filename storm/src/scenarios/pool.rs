//! E25: more nodes than workers, and nodes that crash.
//!
//! After a crash a worker rests: until the lease has ended, and until its horizon is no more than 2 s
//! ahead, for a new tenure begins at the horizon. With the times of this run that is about a second
//! after the last renewal. The experiment's "TTL + 1 s" is therefore read as "horizon + 1 s", where
//! the horizon is the outage budget from the last renewal.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::history::{Outcome, RequestRecord};
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const NODES: usize = 12;
const WORKERS: u64 = 8;
/// One each three seconds, for a minute.
const CYCLES: u32 = 20;
const EVERY: Duration = Duration::from_secs(3);
/// What a node without a worker says.
const REASON: &str = "NO_WORKER";

pub(crate) const ROW: Scenario = Scenario {
    id: "E25",
    title: "more nodes than workers",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let pressure = Pressure { connections: 2, ..Pressure::default() };
    Participants { nodes: NODES, workers: WORKERS, pressure, ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut slowest, mut successors, mut most) = (Duration::ZERO, 0, 0);
    // At least so many that somebody who waited has his turn.
    for _ in 0..stage.cycles(CYCLES).max(4) {
        if !stage.goes_on() {
            break;
        }
        let victim = stage.any_serving()?;
        let before = stage.serving();
        let begin = clock::now();
        stage.nodes[victim].daemon.kill();
        slowest = slowest.max(all_used(stage, begin)?);
        let after = stage.serving();
        successors += u64::from(after.iter().any(|node| !before.contains(node)));
        // Not before: it might be quicker than those who wait.
        stage.nodes[victim].launch()?;
        let left = EVERY.saturating_sub(clock::now() - begin);
        stage.rest(left);
        stage.record_fault("SIGKILL", Some(victim), begin);
        most = most.max(holders(stage)?);
    }
    stage.verdict.hold("no more holders than workers", most <= WORKERS, || {
        format!("{most} nodes say that they hold a worker, and there are {WORKERS}")
    });
    stage.verdict.guard("nodes that hold a worker, by their own word", most, WORKERS);
    stage.verdict.guard("workers that went to one who waited", successors, 1);
    let allowed = stage.lease.budget + Duration::from_secs(1);
    stage.verdict.bar("a free worker idle while somebody waits", slowest, allowed);
    refusals(stage);
    Ok(())
}

/// Waits until all workers issue; how long that took.
fn all_used(stage: &Stage, since: Duration) -> io::Result<Duration> {
    let wanted = usize::try_from(WORKERS).unwrap_or(usize::MAX);
    wait_until("all workers to issue", Duration::from_secs(30), || {
        let record = &stage.load.record;
        let issuing = (0..NODES).filter(|node| record.first_answer(*node, since).is_some());
        issuing.count() >= wanted || !stage.goes_on()
    })?;
    Ok(clock::now() - since)
}

/// How many nodes say that they hold a worker. They are asked one after the other, so that a worker
/// which moves may be counted twice: then they are asked again.
fn holders(stage: &Stage) -> io::Result<u64> {
    let mut least = u64::MAX;
    for _ in 0..3 {
        let mut holders = 0;
        for node in &stage.nodes {
            let info = node.info()?;
            let holds = |lane: &serde_json::Value| lane["worker"].is_u64();
            holders +=
                u64::from(info["lanes"].as_array().is_some_and(|lanes| lanes.iter().any(holds)));
        }
        least = least.min(holders);
        if least <= WORKERS {
            break;
        }
    }
    Ok(least)
}

/// Whoever has no worker says so, and soon.
fn refusals(stage: &mut Stage) {
    let record = &stage.load.record;
    let (count, slowest) =
        record.fold((0, Duration::ZERO), |(count, slowest), mark| match is_refused(mark) {
            true => (count + 1, slowest.max(mark.answered - mark.asked)),
            false => (count, slowest),
        });
    stage.verdict.guard("requests that were told NO_WORKER", count, 100);
    stage.verdict.bar("slowest NO_WORKER", slowest, Duration::from_secs(1));
}

fn is_refused(mark: &RequestRecord) -> bool {
    matches!(&mark.outcome, Outcome::Refused(reason) if reason == REASON)
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let Outcomes { counts, refused, verdict, faults, .. } = outcomes;
    verdict.hold("no more workers than there are", counts.workers <= WORKERS, || {
        format!("IDs of {} workers, and there are {WORKERS}", counts.workers)
    });
    let others: Vec<_> = refused.keys().filter(|reason| *reason != REASON).collect();
    verdict
        .hold("a typed reason", others.is_empty(), || format!("refused with {others:?} as well"));
    verdict.guard("tenures", counts.tenures, WORKERS + faults.len() as u64);
}
