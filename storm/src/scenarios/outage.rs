//! E13: the store is frozen for longer than nodes may go on without it, or killed and started again
//! with what it has on disk.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Cast, Outcomes, Plan, Stage};
use crate::store::Kind;

/// Of each kind.
const CYCLES: u32 = 10;
const NODES: usize = 3;
/// More than the outage budget.
const FROZEN: Duration = Duration::from_secs(5);
/// Less: nodes go on, if the store is quick to start.
const DOWN: Duration = Duration::from_secs(2);
/// A node may go on for the budget after its last renewal; this is for the answer to arrive.
const SLACK: Duration = Duration::from_millis(500);

pub(crate) const ROW: Scenario = Scenario {
    id: "E13",
    title: "the store is frozen or killed",
    stores: &Kind::SERVERS,
    play: Play::Nodes { cast, act, judge },
};

fn cast(_: &Plan) -> Cast {
    Cast { nodes: NODES, ..Cast::default() }
}

#[derive(Clone, Copy, Debug)]
enum Outage {
    Frozen,
    Killed,
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut silent, mut slowest) = (0, Duration::ZERO);
    let mut longest = Duration::ZERO;
    let cycles = 2 * stage.cycles(CYCLES);
    for cycle in 0..cycles {
        if !stage.goes_on() {
            break;
        }
        let quiet = stage.between(Duration::ZERO, Duration::from_secs(1));
        stage.rest(quiet);
        let outage = if cycle % 2 == 0 { Outage::Frozen } else { Outage::Killed };
        let begin = clock::now();
        silent += u64::from(happens(stage, outage)?);
        let back = clock::now();
        stage.was(format!("{outage:?}"), None, begin);
        longest = longest.max(longest_service(stage, begin, back));
        slowest = slowest.max(stage.all_serve(NODES, back)?);
    }
    let budget = stage.lease.budget;
    stage.verdict.hold("stops by itself", longest <= budget + SLACK, || {
        format!("a node issued for {longest:?} without a store; its budget is {budget:?}")
    });
    stage.verdict.note("longest service without the store", format!("{longest:?}"));
    stage.verdict.guard("outages seen by a question of our own", silent, cycles.into());
    stage.verdict.bar("return to three nodes that issue", slowest, Duration::from_secs(2));
    Ok(())
}

/// Lets the store be away, and brings it back; whether it was seen to be away.
fn happens(stage: &mut Stage, outage: Outage) -> io::Result<bool> {
    let none = || io::Error::other("no server to do this to");
    match outage {
        Outage::Frozen => {
            stage.store.daemon().ok_or_else(none)?.pause()?;
            stage.rest(FROZEN);
            let silent = stage.store.is_silent();
            stage.store.daemon().ok_or_else(none)?.resume()?;
            Ok(silent)
        }
        Outage::Killed => {
            stage.store.daemon().ok_or_else(none)?.kill();
            stage.rest(DOWN);
            let silent = stage.store.is_silent();
            stage.store.restart()?;
            Ok(silent)
        }
    }
}

/// For how long any node gave Ids after the store had gone.
fn longest_service(stage: &Stage, begin: Duration, back: Duration) -> Duration {
    let last = |node| stage.load.record.last_answer(node, back);
    let lasts = (0..stage.nodes.len()).filter_map(last);
    lasts.map(|last| last.saturating_sub(begin)).max().unwrap_or_default()
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let refused = outcomes.refused.get("HORIZON_REACHED").copied().unwrap_or(0);
    outcomes.verdict.guard("requests refused as HORIZON_REACHED", refused, 1);
}
