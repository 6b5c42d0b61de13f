//! E48: the first node of a namespace has a clock that is a year ahead. Others can use the namespace
//! within a minute, or after one documented command.

use std::io;
use std::process::Command;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::scenario::{Play, Scenario};
use crate::stage::{Namespace, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const FIRST: usize = 0;
const SECOND: usize = 1;
const YEAR: Duration = Duration::from_secs(365 * 86_400);
const USABLE: Duration = Duration::from_secs(60);
/// What the documentation tells to do if it is not usable by itself; the store's URL follows.
const MENDS: [&str; 4] = ["store", "repair", "--wrong-times", "--store"];

pub(crate) const ROW: Scenario = Scenario {
    id: "E48",
    title: "the first clock is a year ahead",
    stores: &[Kind::Redis, Kind::Etcd, Kind::File],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let ms = i64::try_from(YEAR.as_millis()).unwrap_or(i64::MAX);
    Participants {
        nodes: 2,
        late: 2,
        own_clocks: vec![(FIRST, ms)],
        namespace: Namespace::Found,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[FIRST].start()?;
    let shown = stage.nodes[FIRST].clock_unix_ms()?.abs_diff(clock::unix_ms());
    let is_ahead = u128::from(shown).abs_diff(YEAR.as_millis()) < 10_000;
    stage.verdict.guard("clocks that are ahead, by the node's word", is_ahead.into(), 1);
    // It may well refuse to create it.
    let created = wait_until("a namespace", Duration::from_secs(15), || {
        stage.store.incarnation().is_ok_and(|found| found.is_some()) || !stage.goes_on()
    });
    stage.rest(Duration::from_secs(3));
    stage.nodes[FIRST].daemon.kill();
    stage.record_fault("the first node's clock a year ahead", Some(FIRST), begin);
    stage.verdict.note("it created the namespace", created.is_ok());
    let started = clock::now();
    stage.nodes[SECOND].launch()?;
    match stage.recovery(SECOND, started, USABLE) {
        Ok(took) => stage.verdict.note("usable by itself", format!("{took:?}")),
        Err(_) => mend(stage)?,
    }
    stage.rest(Duration::from_secs(3));
    Ok(())
}

/// Does what the documentation says, once.
fn mend(stage: &mut Stage) -> io::Result<()> {
    let output = Command::new(&stage.plan.frazil).args(MENDS).arg(stage.store.url()).output()?;
    let said = [output.stdout, output.stderr].concat();
    stage.verdict.note("it was to be mended", String::from_utf8_lossy(&said).trim());
    let mended = clock::now();
    let took = stage.starts_within(SECOND, mended, USABLE);
    stage.verdict.note("usable when mended", format!("{took:?}"));
    Ok(())
}

/// Nobody else runs while it does.
fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("IDs", outcomes.counts.ids, 1000);
}
