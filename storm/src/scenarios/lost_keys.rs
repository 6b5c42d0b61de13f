//! E17b: some of the keys that a namespace has on Redis are gone, any of them, as eviction takes
//! them; and a node starts at that moment.
//!
//! The loss of meta is E09; here it is there, so that nothing tells a newcomer to wait but what is
//! left of the rest. As many workers as nodes, so that one that seems new is somebody's.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Namespace, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 20;
const NODES: usize = 3;
/// All but meta.
const KEYS: [&str; 6] = ["w", "born", "lineage", "w:idx", "w:held", "w:nonces"];
/// As long as holders go on without the store (10 s), the option `isolation`, clocks (2 s each) and the
/// budget (3 s); and for a full pool to be asked again.
const RECOVERED: Duration = Duration::from_secs(19);

pub(crate) const ROW: Scenario = Scenario {
    id: "E17b",
    title: "Redis loses some of the keys",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    Participants {
        nodes: NODES,
        workers: NODES as u64,
        more_flags: ["--election-ttl", "1s"].map(str::to_owned).into(),
        namespace: Namespace::Found,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut gone, mut slowest) = (0, Duration::ZERO);
    for cycle in 0..stage.cycles(CYCLES).max(2) {
        if !stage.goes_on() {
            return Ok(());
        }
        let quiet = stage.between(Duration::from_millis(500), Duration::from_millis(1500));
        stage.rest(quiet);
        let victim = stage.random.usize(0..NODES);
        // The first time what is worst: nothing is known of any worker, and nobody says so.
        let mut lost = vec!["w", "born"];
        if cycle > 0 {
            lost = KEYS.into_iter().filter(|_| stage.random.bool()).collect();
        }
        let begin = clock::now();
        let keys: Vec<String> =
            lost.iter().map(|key| format!("{{frazil:default}}:{key}")).collect();
        let mut command = vec!["DEL"];
        command.extend(keys.iter().map(String::as_str));
        if !lost.is_empty() {
            let said = stage.store.redis()?.0.cli(&command)?;
            gone += said.trim().parse::<u64>().map_err(io::Error::other)?;
        }
        stage.nodes[victim].daemon.kill();
        let restarted = clock::now();
        stage.nodes[victim].launch()?;
        stage.recovery(victim, restarted, Duration::from_secs(40))?;
        // The others may go on for as long, although they have lost their workers.
        stage.rest(stage.lease.budget);
        stage.all_serve(NODES, clock::now())?;
        slowest = slowest.max(clock::now() - restarted);
        stage.record_fault(format!("lost {lost:?}, and SIGKILL"), Some(victim), begin);
    }
    stage.verdict.guard("keys that were there and deleted", gone, 2);
    stage.verdict.bar("a loss to three nodes that issue", slowest, RECOVERED);
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let losses = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + losses);
}
