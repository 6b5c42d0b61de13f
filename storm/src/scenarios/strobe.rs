//! E21: clocks that swing by 200 ms every few milliseconds, then steps of all sizes, under load.
//!
//! Half of the seeds ride over steps back, the others refuse (the default): then little is issued
//! while clocks swing, and the bar for throughput does not apply.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

const STROBE: Duration = Duration::from_secs(30);
const MIX: Duration = Duration::from_secs(60);
const SWING_MS: i64 = 200;
/// The largest bump of the mix: 1.5^31 ms is 288 s.
const EXPONENTS: std::ops::RangeInclusive<i32> = 6..=31;
/// Of what is issued while clocks are right.
const SHARE: f64 = 0.25;

pub(crate) const ROW: Scenario = Scenario {
    id: "E21",
    title: "clocks that swing and jump",
    stores: &Kind::ALL,
    play: Play::Nodes { cast, act, judge },
};

fn rides(plan: &Plan) -> bool {
    plan.seed.is_multiple_of(2)
}

fn cast(plan: &Plan) -> Cast {
    let policy = if rides(plan) { "ride" } else { "refuse" };
    Cast { more_flags: vec!["--rollback".to_owned(), policy.to_owned()], ..Cast::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let quiet = rate(stage, clock::now() - Duration::from_secs(1));
    for node in &stage.nodes {
        node.door.tolerate(Duration::from_secs(289), Duration::from_secs(1));
    }
    let begin = clock::now();
    let end = begin + STROBE.mul_f64(stage.plan.scale);
    while stage.goes_on() && clock::now() < end {
        for node in 0..stage.nodes.len() {
            let ms = if stage.random.bool() { SWING_MS } else { -SWING_MS };
            stage.nodes[node].clock.set(ms * 1_000_000)?;
        }
        let pause = stage.between(Duration::from_millis(1), Duration::from_millis(10));
        clock::rest(pause);
    }
    let share = rate(stage, begin) / quiet.max(1.0);
    stage.was("clocks swing by 200 ms", None, begin);
    stage.verdict.note("throughput while clocks swing", format!("{share:.2} of that before"));
    let is_enough = share >= SHARE || !rides(&stage.plan);
    stage.verdict.hold("goes on", is_enough, || format!("{share:.2} of the throughput is left"));
    mix(stage)?;
    let steps: f64 = stage.nodes.iter().map(steps).sum::<io::Result<f64>>()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    stage.verdict.guard("steps that the nodes told", steps as u64, 10);
    Ok(())
}

/// Bumps of one clock at a time, as large as chance will have them.
fn mix(stage: &mut Stage) -> io::Result<()> {
    let end = clock::now() + MIX.mul_f64(stage.plan.scale);
    while stage.goes_on() && clock::now() < end {
        let victim = stage.random.usize(0..stage.nodes.len());
        let exponent = stage.random.i32(EXPONENTS);
        #[expect(clippy::cast_possible_truncation, reason = "at most 288 s in nanoseconds")]
        let nanos = (1.5_f64.powi(exponent) * 1e6) as i64;
        let nanos = if stage.random.bool() { nanos } else { -nanos };
        let begin = clock::now();
        stage.nodes[victim].clock.set(nanos)?;
        let lasts = stage.between(Duration::from_millis(200), Duration::from_millis(1200));
        stage.rest(lasts);
        stage.was(format!("clock {:+} ms", nanos / 1_000_000), Some(victim), begin);
        stage.nodes[victim].clock.set_right()?;
    }
    for node in 0..stage.nodes.len() {
        stage.nodes[node].clock.set_right()?;
        stage.recovery(node, clock::now(), Duration::from_secs(60))?;
    }
    Ok(())
}

fn steps(node: &crate::node::Node) -> io::Result<f64> {
    node.metric("frazil_clock_steps_total")
}

/// Ids a second since a moment.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(stage: &Stage, since: Duration) -> f64 {
    let now = clock::now();
    let ids = stage
        .load
        .record
        .fold(0, |sum, mark| sum + if mark.asked >= since { mark.ids() } else { 0 });
    ids as f64 / (now - since).as_secs_f64()
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}
