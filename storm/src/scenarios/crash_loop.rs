//! E51: a node crashes as soon as it issues, as often as there are workers. The next start waits for
//! little more than a TTL: what so short a tenure was promised is short.

use std::io;
use std::process::Command;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Lease, Outcomes, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

const WORKERS: u64 = 16;
/// The TTL, and what a look takes that nobody announces.
const WAITS: Duration = Duration::from_secs(35);

pub(crate) const ROW: Scenario = Scenario {
    id: "E51",
    title: "a crash for every worker",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants {
        nodes: 1,
        late: 1,
        workers: WORKERS,
        lease: Lease::DEFAULT,
        window: Lease::DEFAULT.budget,
        pressure: Pressure { connections: 2, ..Pressure::default() },
        setting: Setting::Plain,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    for _ in 0..WORKERS {
        let launched = clock::now();
        stage.nodes[0].launch()?;
        // Once all workers rest it has none to issue with.
        if stage.recovery(0, launched, Duration::from_secs(5)).is_err() {
            break;
        }
        stage.nodes[0].daemon.kill();
    }
    stage.record_fault("SIGKILL, as often as there are workers", Some(0), begin);
    let workers = workers(stage)?;
    let unused = workers["never_used"].as_u64().unwrap_or(WORKERS);
    stage.verdict.guard("workers that were used", WORKERS.saturating_sub(unused), WORKERS);
    stage.verdict.note("crashes within", format!("{:?}", clock::now() - begin));
    stage.verdict.note("workers then", workers);
    stage.nodes[0].daemon.kill();
    let launched = clock::now();
    stage.nodes[0].launch()?;
    let took = stage.starts_within(0, launched, WAITS);
    stage.verdict.bar("the next start to its first ID", took.unwrap_or(WAITS), WAITS);
    stage.rest(Duration::from_secs(1));
    Ok(())
}

/// How many workers are in which state, by `frazil store show`.
pub(super) fn workers(stage: &Stage) -> io::Result<serde_json::Value> {
    let output = Command::new(&stage.plan.frazil)
        .args(["store", "show", "--json", "--store", &stage.store.url()])
        .output()?;
    let mut told: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(told["workers"].take())
}

/// It is about one wait, not about numbers.
fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("IDs", outcomes.counts.ids, 1000);
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, WORKERS);
}
