//! One node, whose generator is tried.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Lease, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const LASTS: Duration = Duration::from_secs(4);
const BACK: Duration = Duration::from_secs(2);

pub(super) const CLOCK_BACK: Scenario = Scenario {
    id: "E01",
    title: "the clock is set back",
    stores: &Kind::ALL,
    play: Play::Nodes { participants: alone, act: set_back, judge },
};
pub(super) const FLOOD: Scenario = Scenario {
    id: "E01",
    title: "more is asked than a tick has",
    stores: &Kind::ALL,
    play: Play::Nodes { participants: flooded, act: flood, judge },
};

/// A budget that reaches beyond the step.
fn alone(_: &Plan) -> Participants {
    let lease = Lease { budget: Duration::from_secs(30), ..Lease::SHORT };
    Participants { nodes: 1, workers: 1, lease, ..Participants::default() }
}

fn set_back(stage: &mut Stage) -> io::Result<()> {
    stage.rest(LASTS);
    let begin = clock::now();
    // IDs that follow the clock are found by their order, not by being late.
    stage.nodes[0].endpoint.tolerate(BACK, BACK);
    stage.nodes[0].clock.set_back(BACK)?;
    stage.rest(LASTS);
    stage.record_fault("clock -2 s", Some(0), begin);
    Ok(())
}

fn flooded(_: &Plan) -> Participants {
    let pressure = Pressure { batch: 8000, pause: Duration::ZERO, ..Pressure::default() };
    let more_flags = vec!["--max-ahead".to_owned(), "1ms".to_owned()];
    Participants { nodes: 1, workers: 1, pressure, more_flags, ..Participants::default() }
}

fn flood(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    stage.rest(LASTS);
    stage.record_fault("a flood", Some(0), begin);
    Ok(())
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("IDs", outcomes.counts.ids, 10_000);
}
