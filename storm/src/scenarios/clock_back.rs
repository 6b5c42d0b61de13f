//! E03: the clock of a running node is set back, by a millisecond or by minutes.
//!
//! The nodes ride (`--rollback ride`): they go on by elapsed time. By default they refuse until the
//! clock has caught up, which E21 plays.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::history::Outcome;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_mixed, was_worth_it, went_on};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 60;
const STEPS_MS: [u64; 7] = [1, 5, 50, 500, 5_000, 60_000, 288_000];
/// A step up to this is nobody's business.
const SMALL_MS: u64 = 10;
/// A step from this on is told by the node.
const TOLD_MS: u64 = 50;
const LASTS: Duration = Duration::from_millis(700);
/// No ID follows the clock back. They go on at 7/8 of the speed of time, so as to be met again, and
/// fall behind by this much until the clock is right and the fault is over.
const LAGS: Duration = LASTS.checked_div(8).unwrap();

pub(crate) const ROW: Scenario = Scenario {
    id: "E03",
    title: "the clock set back",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let more_flags = vec!["--rollback".to_owned(), "ride".to_owned()];
    Participants { more_flags, pressure: Pressure::mixed(), ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let least = u32::try_from(STEPS_MS.len()).unwrap_or(u32::MAX);
    let (mut told, mut needed, mut slowest) = (0, 0, Duration::ZERO);
    for node in &stage.nodes {
        node.endpoint.tolerate_only(Duration::ZERO, Duration::ZERO);
    }
    for cycle in 0..stage.cycles(CYCLES).max(least) {
        if !stage.goes_on() {
            break;
        }
        let step_ms = STEPS_MS[cycle as usize % STEPS_MS.len()];
        let victim = stage.random.usize(0..stage.nodes.len());
        let before = stage.nodes[victim].metric("frazil_clock_backwards_total")?;
        let begin = clock::now();
        let step = Duration::from_millis(step_ms);
        stage.nodes[victim].endpoint.tolerate_only(step.min(LAGS), Duration::ZERO);
        stage.nodes[victim].clock.set_back(step)?;
        stage.rest(LASTS);
        if step_ms >= TOLD_MS {
            needed += 1;
            let after = stage.nodes[victim].metric("frazil_clock_backwards_total")?;
            told += u64::from(after > before);
        }
        check_answers(stage, victim, begin, step_ms);
        stage.record_fault(format!("clock -{step_ms} ms"), Some(victim), begin);
        let right = clock::now();
        stage.nodes[victim].clock.set_right()?;
        slowest = slowest.max(stage.recovery(victim, right, Duration::from_secs(60))?);
        settle(stage, victim)?;
    }
    stage.verdict.guard("steps that the nodes told", told, needed);
    stage.verdict.bar("clock right to first ID", slowest, Duration::from_secs(1));
    Ok(())
}

/// A small step costs no request; a large one is served, or refused with a reason.
fn check_answers(stage: &mut Stage, victim: usize, begin: Duration, step_ms: u64) {
    let marks = stage.load.record.between(victim, begin, clock::now());
    let failed: Vec<_> = marks.iter().filter(|mark| mark.ids() == 0).collect();
    let is_fine = failed.is_empty() || step_ms > SMALL_MS;
    stage.verdict.hold("small steps are not felt", is_fine, || {
        format!("{} requests failed after a step of {step_ms} ms: {:?}", failed.len(), failed[0])
    });
    let strange = failed.iter().find(|mark| match &mark.outcome {
        Outcome::Refused(reason) => !reason.starts_with("CLOCK_"),
        _ => true,
    });
    if let Some(mark) = strange {
        let text = format!("after a step of {step_ms} ms a request ended with {:?}", mark.outcome);
        stage.verdict.find("served or refused for the clock", text);
    }
}

/// Waits until the victim serves steadily, and lets its IDs be held to the truth again.
fn settle(stage: &mut Stage, victim: usize) -> io::Result<()> {
    let since = clock::now();
    wait_until("the node to settle", Duration::from_secs(30), || {
        stage.load.record.first_answer(victim, since).is_some() || !stage.goes_on()
    })?;
    // What was asked for before is answered by now or lost.
    stage.nodes[victim].endpoint.tolerate_only(Duration::ZERO, Duration::ZERO);
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    went_on(outcomes);
    was_mixed(outcomes);
}
