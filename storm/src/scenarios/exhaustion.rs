//! E32: one worker, asked for more than its sequence has.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

const LASTS: Duration = Duration::from_secs(20);
/// 4,096 Ids a millisecond.
const CAP_PER_SECOND: f64 = 4_096_000.0;

pub(crate) const ROW: Scenario = Scenario {
    id: "E32",
    title: "the sequence used up",
    stores: &Kind::ALL,
    play: Play::Nodes { cast, act, judge },
};

fn cast(_: &Plan) -> Cast {
    let pressure =
        Pressure { connections: 8, batch: 4096, pause: Duration::ZERO, ..Pressure::default() };
    Cast { nodes: 1, workers: 1, pressure, ..Cast::default() }
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn act(stage: &mut Stage) -> io::Result<()> {
    let (begin, before) = (clock::now(), stage.load.ids());
    let cpu = stage.nodes[0].metric("process_cpu_seconds_total")?;
    let lasts = LASTS.mul_f64(stage.plan.scale.max(0.2));
    stage.rest(lasts);
    stage.was("more asked than there is", Some(0), begin);
    let seconds = (clock::now() - begin).as_secs_f64();
    let cores = (stage.nodes[0].metric("process_cpu_seconds_total")? - cpu) / seconds;
    let share = (stage.load.ids() - before) as f64 / seconds / CAP_PER_SECOND;
    stage.verdict.note("share of what the layout allows", format!("{share:.3}"));
    stage.verdict.note("cores of the node", format!("{cores:.2}"));
    // More than the layout allows would be duplicates, which the checker knows better.
    stage.verdict.hold("no more than there is", share < 1.01, || format!("{share:.3} of the cap"));
    let exhausted = stage.nodes[0].metric("frazil_sequence_exhausted_total")?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    stage.verdict.guard("sequences used up", exhausted as u64, 1);
    Ok(())
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("Ids", outcomes.counts.ids, 1_000_000);
}
