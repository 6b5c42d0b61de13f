//! E20: the clock of a node jumps an hour ahead for two seconds, or 250 ms for good.
//!
//! A jump by more than two seconds is followed by no ID before it has lasted for a minute, so an hour
//! shows in none; a quarter of a second is followed at once.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_mixed, was_worth_it, went_on};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 5;
const HOUR: Duration = Duration::from_secs(3600);
const LITTLE: Duration = Duration::from_millis(250);
const LASTS: Duration = Duration::from_secs(2);

pub(crate) const ROW: Scenario = Scenario {
    id: "E20",
    title: "the clock jumps ahead",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants { pressure: Pressure::mixed(), ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut told, mut slowest) = (0, Duration::ZERO);
    for node in &stage.nodes {
        node.endpoint.tolerate_only(Duration::ZERO, Duration::ZERO);
    }
    for _ in 0..stage.cycles(CYCLES).max(2) {
        if !stage.goes_on() {
            break;
        }
        let victim = stage.random.usize(0..stage.nodes.len());
        let before = stage.nodes[victim].metric("frazil_clock_steps_total")?;
        let begin = clock::now();
        stage.nodes[victim].clock.set_ahead(HOUR)?;
        stage.rest(LASTS);
        not_felt(stage, victim, begin, "an hour ahead");
        stage.record_fault("clock +3600 s", Some(victim), begin);
        stage.nodes[victim].clock.set_right()?;
        let right = clock::now();
        slowest = slowest.max(stage.recovery(victim, right, Duration::from_secs(60))?);
        let after = stage.nodes[victim].metric("frazil_clock_steps_total")?;
        told += u64::from(after > before);
        little_jump(stage, victim)?;
    }
    stage.verdict.guard("jumps that a node told", told, 1);
    stage.verdict.bar("clock right to first ID", slowest, Duration::from_secs(1));
    Ok(())
}

/// The horizon lies beyond these two seconds, so that no request fails.
fn not_felt(stage: &mut Stage, victim: usize, begin: Duration, what: &str) {
    let marks = stage.load.record.between(victim, begin, clock::now());
    let failed = marks.iter().filter(|mark| mark.ids() == 0).count();
    let count = marks.len();
    stage.verdict.hold("a jump is not felt", failed == 0, || {
        format!("{failed} of {count} requests failed with the clock {what}")
    });
}

/// A quarter of a second costs no request; nor does it when the clock is set right in the end.
fn little_jump(stage: &mut Stage, victim: usize) -> io::Result<()> {
    stage.rest(Duration::from_millis(500));
    let begin = clock::now();
    stage.nodes[victim].endpoint.tolerate_only(Duration::ZERO, LITTLE);
    stage.nodes[victim].clock.set_ahead(LITTLE)?;
    stage.rest(Duration::from_millis(500));
    not_felt(stage, victim, begin, "a little ahead");
    stage.record_fault("clock +250 ms", Some(victim), begin);
    stage.nodes[victim].clock.set_right()?;
    stage.recovery(victim, clock::now(), Duration::from_secs(30))?;
    // By default nothing is issued before the clock has caught up: it is true again.
    stage.nodes[victim].endpoint.tolerate_only(Duration::ZERO, Duration::ZERO);
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    went_on(outcomes);
    was_mixed(outcomes);
}
