//! E50: the clock of a node is an hour ahead for longer than the minute after which a jump is believed.
//!
//! ZooKeeper has a clock of its own, which contradicts: once the clock is right, the node's horizon is
//! no further away than a window. On files nobody contradicts: the clock stays as it is, and is followed
//! at the cost of a gap, but of no request.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const HOUR: Duration = Duration::from_secs(3600);
const LASTS: Duration = Duration::from_secs(75);
/// As the namespace is created.
const WINDOW: Duration = Duration::from_secs(90);
const SLACK: Duration = Duration::from_secs(2);

pub(crate) const ROW: Scenario = Scenario {
    id: "E50",
    title: "the clock is wrong for over a minute",
    stores: &[Kind::Zk, Kind::File],
    play: Play::Nodes { participants, act, judge },
};

/// On files alone: others would contradict.
fn participants(plan: &Plan) -> Participants {
    let nodes = if plan.store == Kind::File { 1 } else { 2 };
    Participants { nodes, window: WINDOW, pressure: Pressure::gentle(), ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[0].clock.set_ahead(HOUR)?;
    if stage.plan.store == Kind::File {
        stage.nodes[0].endpoint.tolerate(Duration::ZERO, HOUR);
    }
    stage.rest(LASTS);
    let shown = stage.nodes[0].clock_unix_ms()?.abs_diff(clock::unix_ms());
    let is_ahead = u128::from(shown).abs_diff(HOUR.as_millis()) < 5000;
    stage.verdict.guard("clocks that are ahead, by the node's word", is_ahead.into(), 1);
    // Alone, it is the one that must go on.
    let node = (stage.nodes.len() > 1).then_some(0);
    stage.record_fault("clock +3600 s", node, begin);
    if stage.plan.store == Kind::File {
        stage.nothing_refused(&[0], begin, begin);
        return Ok(());
    }
    stage.nodes[0].clock.set_right()?;
    stage.rest(Duration::from_secs(5));
    let horizon = stage.nodes[0].metric("frazil_horizon_timestamp_seconds")?;
    let ahead = horizon - clock::unix().as_secs_f64();
    stage.verdict.note("the horizon, from now, in seconds", format!("{ahead:.1}"));
    stage.verdict.hold("a horizon is within a window", is_near(ahead), || {
        format!("the clock is right, and the horizon {ahead:.0} s ahead; {WINDOW:?} is the window")
    });
    Ok(())
}

/// Whether a horizon so many seconds away is one that a clock which is right can have asked for.
fn is_near(ahead: f64) -> bool {
    ahead <= (WINDOW + SLACK).as_secs_f64()
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_horizon_of_a_wrong_clock_is_far() {
        assert!(is_near(-5.0) && is_near(90.0));
        assert!(!is_near(95.0) && !is_near(3600.0) && !is_near(f64::NAN));
    }
}
