//! E44: the store forgets everything under a holder that renews seldom, and a node with the default
//! times wants its worker, the only one there is.
//!
//! The wipe comes soon after the holder has its worker: its first renewal is as far away as it can be.
//! The holder goes on with what it was granted, and keeps the newcomer out until that has passed.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const HOLDER: usize = 0;
const NEWCOMER: usize = 1;
const SELDOM: Lease = Lease {
    ttl: Duration::from_secs(120),
    heartbeat: Duration::from_secs(40),
    budget: Duration::from_secs(600),
};
/// After the holder's first renewal.
const BEYOND: Duration = Duration::from_secs(5);

pub(crate) const ROW: Scenario = Scenario {
    id: "E44",
    title: "a wipe, and unequal heartbeats",
    // ZooKeeper has no sessions as long as this.
    stores: &[Kind::Redis, Kind::Etcd],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants {
        nodes: 2,
        late: 1,
        workers: 1,
        lease: Lease::DEFAULT,
        own_leases: vec![(HOLDER, SELDOM)],
        window: Lease::DEFAULT.budget,
        pressure: Pressure { pause: Duration::from_millis(10), ..Pressure::default() },
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let before = stage.store.incarnation()?;
    let (since, begin) = (clock::now(), clock::now());
    stage.store.clear()?;
    stage.nodes[NEWCOMER].launch()?;
    stage.rest(SELDOM.heartbeat + BEYOND);
    stage.record_fault("wiped", None, begin);
    let after = stage.store.incarnation()?;
    let forgot = before.is_some() && after.is_some() && after != before;
    stage.verdict.guard("wipes after which the namespace was another one", forgot.into(), 1);
    let marks = stage.load.record.between(NEWCOMER, begin, clock::now());
    stage.verdict.guard("requests to the newcomer", marks.len() as u64, 100);
    stage.nothing_refused(&[HOLDER], since, begin);
    stage.verdict.note("the newcomer said last", format!("{:?}", marks.last()));
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}
