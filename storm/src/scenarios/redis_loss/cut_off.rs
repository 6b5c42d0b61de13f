//! Redis loses the acquisition of a node that cannot say so: it is cut off, and issues what it was
//! promised. There is one worker, and another node wants it.

use std::io;
use std::time::Duration;

use super::aof::Watch;
use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Lease, Outcomes, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

const HOLDER: usize = 0;
const NEWCOMER: usize = 1;
/// Its file is on the disk by then.
const SETTLED: Duration = Duration::from_secs(2);
/// Less than the holder was promised.
const BOTH: Duration = Duration::from_secs(6);
const STARTS: Duration = Duration::from_secs(20);

pub(crate) const TRAP: Scenario = Scenario {
    id: "E01",
    title: "an acquisition is lost",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let seconds = Duration::from_secs;
    Participants {
        nodes: 2,
        late: 2,
        workers: 1,
        lease: Lease { ttl: seconds(10), heartbeat: seconds(3), budget: seconds(30) },
        pressure: Pressure { connections: 2, batch: 50, ..Pressure::default() },
        setting: Setting::Plain,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let watch = Watch::start(stage.store.redis()?.0.directory())?;
    stage.rest(SETTLED);
    let begin = clock::now();
    stage.nodes[HOLDER].launch()?;
    stage.recovery(HOLDER, begin, STARTS)?;
    let proxy = stage.nodes[HOLDER].link.proxy.as_ref();
    proxy.ok_or_else(|| io::Error::other("no network to cut"))?.black_hole();
    let redis = stage.store.redis()?.0;
    redis.kill();
    let lost = watch.cut_back(watch.length_at(begin).unwrap_or(0))?;
    redis.restart()?;
    stage.nodes[NEWCOMER].launch()?;
    stage.rest(BOTH);
    stage.verdict.guard("commands that were lost", lost, 1);
    stage.record_fault("killed, without an acquisition", None, begin);
    Ok(())
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("IDs", outcomes.counts.ids, 1000);
    outcomes.verdict.guard("faults", outcomes.faults.len() as u64, 1);
}
