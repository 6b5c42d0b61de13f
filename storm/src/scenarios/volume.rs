//! E07: a billion IDs from three nodes, without a fault: every one is checked.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const IDS: f64 = 1e9;
/// At a tenth of what is expected.
const LIMIT: Duration = Duration::from_secs(3600);
/// What the checker may keep.
const MEMORY_MAX: u64 = 500 << 20;

pub(crate) const ROW: Scenario = Scenario {
    id: "E07",
    title: "volume",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

/// The default lease: nothing is to be seen but IDs.
fn participants(_: &Plan) -> Participants {
    Participants { pressure: pressure(), ..Participants::default() }
}

/// As many IDs as nodes give.
pub(super) fn pressure() -> Pressure {
    Pressure { connections: 2, batch: 4096, pause: Duration::ZERO, ..Pressure::default() }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
pub(super) fn goal(plan: &Plan) -> u64 {
    (IDS * plan.scale) as u64
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    while stage.goes_on() && stage.load.ids() < goal(&stage.plan) {
        check_limit(stage, begin)?;
        stage.rest(Duration::from_millis(100));
    }
    note_rate(stage, begin);
    Ok(())
}

/// # Errors
///
/// If it has lasted for too long.
pub(super) fn check_limit(stage: &Stage, begin: Duration) -> io::Result<()> {
    if clock::now() - begin <= LIMIT {
        return Ok(());
    }
    let (ids, goal) = (stage.load.ids(), goal(&stage.plan));
    Err(io::Error::other(format!("{ids} of {goal} IDs in {LIMIT:?}")))
}

pub(super) fn note_rate(stage: &mut Stage, begin: Duration) {
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = stage.load.ids() as f64 / (clock::now() - begin).as_secs_f64();
    stage.verdict.note("IDs a second, end to end", format!("{rate:.0}"));
}

pub(super) fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    let counts = outcomes.counts;
    outcomes.verdict.guard("IDs", counts.ids, goal(plan));
    outcomes.verdict.note("bytes that the checker's set keeps", counts.memory_bytes);
    outcomes.verdict.hold("memory", counts.memory_bytes <= MEMORY_MAX, || {
        format!("the set of {} IDs has {} bytes", counts.ids, counts.memory_bytes)
    });
}
