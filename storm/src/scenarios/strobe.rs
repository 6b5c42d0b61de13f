//! E21: clocks that swing by 200 ms every few milliseconds, then steps of all sizes, under load.
//!
//! Half of the seeds ride over steps back, the others refuse (the default): then little is issued
//! while clocks swing, and the bar for throughput does not apply.
//!
//! IDs are held to the truth as far as the fault in force explains. A jump ahead is followed if it is
//! no more than two seconds. A step back is followed by no ID: those that ride slow down until real
//! time meets them, after eight times the step, and are ahead for as long where a jump has ended; those
//! that refuse issue nothing before the clock has caught up, and then by the clock, which is behind.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_mixed, was_worth_it, went_on};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const STROBE: Duration = Duration::from_secs(30);
const MIX: Duration = Duration::from_secs(60);
const SWING_MS: i64 = 200;
/// The largest bump of the mix: 1.5^31 ms is 288 s.
const EXPONENTS: std::ops::RangeInclusive<i32> = 6..=31;
/// A jump ahead by more is not followed: it does not last for a minute here.
const FOLLOWED: Duration = Duration::from_secs(2);
/// How long a bump lasts at the most.
const BUMP_MAX: Duration = Duration::from_millis(1200);
/// A node looks at its clock for each request, given IDs or refused.
const LOOKS: usize = 10;
/// Of what is issued while clocks are right.
const SHARE: f64 = 0.25;

pub(crate) const ROW: Scenario = Scenario {
    id: "E21",
    title: "clocks that swing and jump",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

fn rides(plan: &Plan) -> bool {
    plan.seed.is_multiple_of(2)
}

fn participants(plan: &Plan) -> Participants {
    let policy = if rides(plan) { "ride" } else { "refuse" };
    let more_flags = vec!["--rollback".to_owned(), policy.to_owned()];
    Participants { more_flags, pressure: Pressure::mixed(), ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let quiet = rate(stage, clock::now() - Duration::from_secs(1));
    for node in &stage.nodes {
        let swing = Duration::from_millis(SWING_MS.unsigned_abs());
        node.endpoint.tolerate_only(swing, swing);
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
    for node in 0..stage.nodes.len() {
        stage.record_fault("clocks swing by 200 ms", Some(node), begin);
    }
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
    let swung = Duration::from_millis(SWING_MS.unsigned_abs());
    let mut leads = vec![Lead::new(swung, &stage.plan); stage.nodes.len()];
    for node in 0..stage.nodes.len() {
        stage.nodes[node].clock.set_right()?;
        is_noticed(stage, node)?;
    }
    let end = clock::now() + MIX.mul_f64(stage.plan.scale);
    while stage.goes_on() && clock::now() < end {
        for (node, lead) in stage.nodes.iter().zip(&leads) {
            node.endpoint.tolerate_only(Duration::ZERO, lead.now());
        }
        let victim = stage.random.usize(0..stage.nodes.len());
        let exponent = stage.random.i32(EXPONENTS);
        #[expect(clippy::cast_possible_truncation, reason = "at most 288 s in nanoseconds")]
        let nanos = (1.5_f64.powi(exponent) * 1e6) as i64;
        let nanos = if stage.random.bool() { nanos } else { -nanos };
        let begin = clock::now();
        let allowed = explained(nanos, rides(&stage.plan));
        let ahead = allowed.ahead.max(leads[victim].now());
        leads[victim] = Lead::new(ahead, &stage.plan);
        stage.nodes[victim].endpoint.tolerate_only(allowed.behind, ahead);
        stage.nodes[victim].clock.set(nanos)?;
        let lasts = stage.between(Duration::from_millis(200), BUMP_MAX);
        stage.rest(lasts);
        stage.record_fault(format!("clock {:+} ms", nanos / 1_000_000), Some(victim), begin);
        stage.nodes[victim].clock.set_right()?;
        is_noticed(stage, victim)?;
    }
    for node in 0..stage.nodes.len() {
        stage.nodes[node].clock.set_right()?;
        stage.recovery(node, clock::now(), Duration::from_secs(60))?;
    }
    Ok(())
}

/// Waits until a node has looked at its clock again. Otherwise the next bump would be a step from where
/// the last one was, and two small ones could make a large one that is followed.
fn is_noticed(stage: &Stage, node: usize) -> io::Result<()> {
    let right = clock::now();
    wait_until("a node to look at its clock", Duration::from_secs(30), || {
        let ended = stage.load.record.between(node, right, clock::now());
        ended.len() >= LOOKS || !stage.goes_on()
    })
}

/// How far IDs may be off while a clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed {
    behind: Duration,
    ahead: Duration,
}

/// What a bump explains.
fn explained(nanos: i64, rides: bool) -> Allowed {
    let by = Duration::from_nanos(nanos.unsigned_abs());
    let (behind, ahead) = match nanos {
        // They slow down by an eighth while it lasts.
        ..0 if rides => (by.min(BUMP_MAX / 8), Duration::ZERO),
        // With a longer one the clock does not catch up while it lasts, however late it ends.
        ..0 if by <= BUMP_MAX * 2 => (by, Duration::ZERO),
        0.. if by <= FOLLOWED => (Duration::ZERO, by),
        _ => (Duration::ZERO, Duration::ZERO),
    };
    Allowed { behind, ahead }
}

/// How far a node's IDs may still be ahead.
#[derive(Clone, Copy, Debug)]
struct Lead {
    ahead: Duration,
    until: Duration,
}

impl Lead {
    /// Those that refuse issue nothing before real time is there.
    fn new(ahead: Duration, plan: &Plan) -> Self {
        let met_after = if rides(plan) { ahead * 8 } else { ahead };
        Self { ahead, until: clock::now() + BUMP_MAX + met_after }
    }

    fn now(&self) -> Duration {
        if clock::now() <= self.until { self.ahead } else { Duration::ZERO }
    }
}

fn steps(node: &crate::node::Node) -> io::Result<f64> {
    node.metric("frazil_clock_steps_total")
}

/// IDs a second since a moment.
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
    // Those that refuse may do so for as long as a bump lasts.
    if rides(plan) {
        went_on(outcomes);
    }
    was_mixed(outcomes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bump_explains_more_than_ids_may_follow() {
        let ms = |ms: i64, rides: bool| {
            let Allowed { behind, ahead } = explained(ms * 1_000_000, rides);
            (behind.as_millis(), ahead.as_millis())
        };
        for rides in [true, false] {
            assert_eq!(ms(288_000, rides), (0, 0));
            assert_eq!(ms(1478, rides), (0, 1478));
            assert_eq!(ms(-11, rides), (11, 0));
        }
        assert_eq!((ms(-437, true), ms(-437, false)), ((150, 0), (437, 0)));
        assert_eq!((ms(-288_000, true), ms(-288_000, false)), ((150, 0), (0, 0)));
    }
}
