//! E45: the directory of a file store is removed under a node that runs, and another node starts on the
//! same path. There is one worker.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const NEWCOMER: usize = 1;
/// A new directory is not waited for by long.
const STARTS: Duration = Duration::from_secs(20);
/// More than the holder's heartbeat: by then it has noticed.
const BOTH: Duration = Duration::from_secs(12);

pub(crate) const ROW: Scenario = Scenario {
    id: "E45",
    title: "the directory is removed",
    stores: &[Kind::File],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants {
        nodes: 2,
        late: 1,
        workers: 1,
        lease: Lease::DEFAULT,
        window: Lease::DEFAULT.budget,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let before = stage.store.incarnation()?;
    let begin = clock::now();
    stage.store.wipe()?;
    stage.nodes[NEWCOMER].launch()?;
    let took = stage.starts_within(NEWCOMER, begin, STARTS);
    stage.rest(BOTH);
    stage.record_fault("directory removed", Some(0), begin);
    let after = stage.store.incarnation()?;
    let is_new = before.is_some() && after.is_some() && after != before;
    stage.verdict.guard("directories that were another one", is_new.into(), 1);
    stage.verdict.bar("removed to the first ID of the next", took.unwrap_or(STARTS), STARTS);
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}
