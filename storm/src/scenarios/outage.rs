//! E13: the store is frozen for longer than nodes may go on without it, or killed and started again
//! with what it has on disk.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::history::Record;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
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
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants { nodes: NODES, ..Participants::default() }
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
        let away = happens(stage, outage)?;
        silent += u64::from(away.is_seen);
        // For a store that is started anew this is when it was seen to answer.
        let back = clock::now();
        stage.record_fault(format!("{outage:?}"), None, away.from);
        longest = longest.max(longest_service(&stage.load.record, NODES, &away));
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

/// When there surely was no store: from its end until it is let go on or started.
#[derive(Clone, Copy, Debug)]
struct StoreOutage {
    from: Duration,
    until: Duration,
    /// By a question of our own.
    is_seen: bool,
}

/// Lets the store be away, and brings it back.
fn happens(stage: &mut Stage, outage: Outage) -> io::Result<StoreOutage> {
    let none = || io::Error::other("no server to do this to");
    let daemon = stage.store.daemon().ok_or_else(none)?;
    match outage {
        Outage::Frozen => daemon.pause()?,
        Outage::Killed => daemon.kill(),
    }
    let from = clock::now();
    stage.rest(if matches!(outage, Outage::Frozen) { FROZEN } else { DOWN });
    let is_seen = stage.store.is_silent();
    let until = clock::now();
    match outage {
        Outage::Frozen => stage.store.daemon().ok_or_else(none)?.resume()?,
        Outage::Killed => stage.store.restart()?,
    }
    Ok(StoreOutage { from, until, is_seen })
}

/// For how long any node gave IDs after the store had gone, and before it came back.
fn longest_service(record: &Record, nodes: usize, away: &StoreOutage) -> Duration {
    let lasts = (0..nodes).filter_map(|node| record.last_answer(node, away.until));
    lasts.map(|last| last.saturating_sub(away.from)).max().unwrap_or_default()
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let refused = outcomes.refused.get("HORIZON_REACHED").copied().unwrap_or(0);
    outcomes.verdict.guard("requests refused as HORIZON_REACHED", refused, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Outcome, RequestRecord};

    #[test]
    fn service_counts_while_the_store_is_away_and_not_until_that_it_is_back_is_noticed() {
        let (record, seconds) = (Record::new(2), Duration::from_secs_f64);
        for (node, asked) in [(0, 9.0), (0, 12.5), (1, 11.0), (1, 15.5)] {
            let answered = seconds(asked);
            record.add(node, RequestRecord { asked: answered, answered, outcome: Outcome::Ids(1) });
        }
        let away = StoreOutage { from: seconds(10.0), until: seconds(15.0), is_seen: true };
        assert_eq!(longest_service(&record, 2, &away), seconds(2.5));
        let away = StoreOutage { until: seconds(16.0), ..away };
        assert_eq!(longest_service(&record, 2, &away), seconds(5.5), "issued all the while");
    }
}
