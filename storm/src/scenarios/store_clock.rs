//! E16: the clock of Redis jumps ahead, which ends all leases early, is put right, and jumps back.
//!
//! Nodes whose clock differs from the store's by more than 10 s stop by their horizon; that is
//! theirs to do, as they cannot know whose clock is wrong. In a small run the clock jumps ahead by
//! 12 s instead of 31, since that is how long a worker whose holder dies meanwhile must rest.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 2;
const NODES: usize = 3;
const AHEAD: Duration = Duration::from_secs(31);
const AHEAD_SMALL: Duration = Duration::from_secs(12);
const BACK: Duration = Duration::from_secs(600);
/// More than the outage budget: longer than anything goes on by itself.
const WRONG: Duration = Duration::from_secs(5);
/// A presence that ends by time alone is announced by nobody: a full pool is asked this often.
const POOL_PAUSE: Duration = Duration::from_secs(5);
/// A node may go on for the budget after its last renewal; this is for the answer to arrive.
const LATE: Duration = Duration::from_millis(500);
/// For a process to start and an answer to arrive.
const SLACK: Duration = Duration::from_secs(2);

pub(crate) const ROW: Scenario = Scenario {
    id: "E16",
    title: "the clock of Redis is stepped",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants, act, judge },
};

/// As many workers as nodes: whoever starts wants one that is, or was, somebody's.
fn participants(_: &Plan) -> Participants {
    Participants { nodes: NODES, workers: NODES as u64, ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let ahead = if stage.plan.scale >= 0.5 { AHEAD } else { AHEAD_SMALL };
    let (mut seen, mut slowest) = (0, Duration::ZERO);
    let cycles = stage.cycles(CYCLES);
    for _ in 0..cycles {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        for step in [millis(ahead), -millis(BACK)] {
            if !stage.goes_on() {
                return Ok(());
            }
            let quiet = stage.between(Duration::from_millis(500), Duration::from_millis(1500));
            stage.rest(quiet);
            seen += u64::from(steps(stage, step)?);
            let right = clock::now();
            slowest = slowest.max(stage.all_serve(NODES, right)?);
        }
    }
    stage.verdict.guard("steps that TIME shows", seen, u64::from(2 * cycles));
    // The last to come may have waited for its predecessor's horizon.
    stage.verdict.bar("a right clock to three nodes that issue", slowest, Duration::from_secs(5));
    stays_blocked(stage, ahead)
}

/// The clock is wrong by so many milliseconds for a while, and a node starts at that moment. Whether
/// Redis was seen to go by it.
fn steps(stage: &mut Stage, millis: i64) -> io::Result<bool> {
    let victim = stage.random.usize(0..NODES);
    let begin = clock::now();
    stage.store.redis()?.1.set(millis * 1_000_000)?;
    let is_seen = (store_offset_ms(stage)? - millis).abs() < 1000;
    stage.nodes[victim].daemon.kill();
    stage.nodes[victim].launch()?;
    stage.rest(WRONG);
    let longest = (0..NODES).filter_map(|node| stage.load.record.last_answer(node, clock::now()));
    let longest = longest.max().unwrap_or_default().saturating_sub(begin);
    let budget = stage.lease.budget;
    stage
        .verdict
        .note(format!("longest service with a store {millis} ms off"), format!("{longest:?}"));
    stage.verdict.hold("does not trust either clock", longest <= budget + LATE, || {
        format!(
            "a node issued for {longest:?} although the clocks differ; its budget is {budget:?}"
        )
    });
    stage.store.redis()?.1.set_right()?;
    stage.record_fault(format!("TIME {millis} ms off"), Some(victim), begin);
    Ok(is_seen)
}

/// A node dies that has renewed by a clock which is ahead. Its worker is present until the clock,
/// which is put right, has come there; not for longer.
fn stays_blocked(stage: &mut Stage, ahead: Duration) -> io::Result<()> {
    let victim = stage.any_serving()?;
    let begin = clock::now();
    stage.store.redis()?.1.set_ahead(ahead)?;
    // At least one renewal.
    stage.rest(stage.lease.heartbeat * 2);
    stage.nodes[victim].daemon.kill();
    stage.store.redis()?.1.set_right()?;
    let right = clock::now();
    stage.nodes[victim].launch()?;
    let limit = ahead + stage.lease.ttl + POOL_PAUSE;
    let took = stage.recovery(victim, right, limit * 2)?;
    stage.verdict.guard("seconds that the worker was blocked", took.as_secs(), ahead.as_secs() / 2);
    stage
        .verdict
        .note("a worker of a dead node with times ahead was blocked for", format!("{took:?}"));
    stage.verdict.hold("no longer than the step", took <= limit + SLACK, || {
        format!("a worker was blocked for {took:?}; the step, the TTL and a pause are {limit:?}")
    });
    stage.record_fault("dies while TIME is ahead", Some(victim), begin);
    Ok(())
}

/// By how much the time that Redis tells is ahead of the true one.
fn store_offset_ms(stage: &Stage) -> io::Result<i64> {
    let time = stage.store.redis()?.0.cli(&["TIME"])?;
    let seconds = time.lines().next().and_then(|seconds| seconds.trim().parse::<i64>().ok());
    let seconds = seconds.ok_or_else(|| io::Error::other(format!("TIME said {time}")))?;
    // It tells whole seconds first; half of one is the least error.
    Ok(seconds * 1000 + 500 - clock::unix_ms())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let untrusted = outcomes.refused.get("CLOCK_UNTRUSTED").copied().unwrap_or(0);
    outcomes.verdict.guard("requests refused as CLOCK_UNTRUSTED", untrusted, 1);
}
