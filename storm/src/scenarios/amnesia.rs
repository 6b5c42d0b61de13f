//! E09: the store forgets everything while nodes hold workers, and one of them starts anew.
//!
//! The namespace is founded by the nodes: with `frazil store init` its window would be at least 90 s,
//! which is how long a live holder lets all slots of a forgotten namespace rest. As it is that is
//! the outage budget and two seconds. There are as many workers as nodes, so that whoever acquires
//! too early gets one that is in use.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Namespace, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 10;
/// However little is played: once is no experiment.
const CYCLES_MIN: u32 = 2;
const NODES: usize = 3;
/// A slot is taken when its floor is no further ahead than this.
const RUN_AHEAD: Duration = Duration::from_secs(2);
/// One renewal, and for etcd, which was restarted, a connection.
const NOTICED: Duration = Duration::from_secs(1);
/// A node that finds nothing waits 17 s for others to speak up: they look every 10, a request may take
/// 5, and a store's clock may be 2 back. The rest is for the wait to be noticed.
const RECOVERED: Duration = Duration::from_millis(18_500);

pub(crate) const ROW: Scenario = Scenario {
    id: "E09",
    title: "the store forgets everything",
    stores: &Kind::SERVERS,
    play: Play::Nodes { participants, act, judge },
};

/// A budget that is longer than the shortest, so that an acquisition without quarantine shows.
fn participants(_: &Plan) -> Participants {
    let lease = Lease { budget: Duration::from_secs(6), ..Lease::SHORT };
    let workers = NODES as u64;
    Participants {
        nodes: NODES,
        workers,
        lease,
        namespace: Namespace::Found,
        ..Participants::default()
    }
}

/// The worst of all cycles.
#[derive(Debug, Default)]
struct Observed {
    forgotten: u64,
    acquired: u64,
    slowest_notice: Duration,
    slowest_recovery: Duration,
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let mut seen = Observed::default();
    let cycles = stage.cycles(CYCLES).max(CYCLES_MIN);
    for _ in 0..cycles {
        if !stage.goes_on() {
            break;
        }
        // Long enough that horizons are as far away as they get, at least now and then.
        let quiet = stage.between(Duration::from_millis(200), Duration::from_secs(4));
        stage.rest(quiet);
        forget(stage, &mut seen)?;
    }
    stage.verdict.guard(
        "wipes after which the namespace was another one",
        seen.forgotten,
        cycles.into(),
    );
    stage.verdict.guard("acquisitions by a restarted node", seen.acquired, cycles.into());
    stage.verdict.bar("a wipe to its notice by all holders", seen.slowest_notice, NOTICED);
    stage.verdict.bar("a wipe to three nodes that issue", seen.slowest_recovery, RECOVERED);
    Ok(())
}

/// Wipes the store, and lets a node acquire from what is left.
fn forget(stage: &mut Stage, seen: &mut Observed) -> io::Result<()> {
    let victim = stage.random.usize(0..NODES);
    let others: Vec<usize> = (0..NODES).filter(|node| *node != victim).collect();
    let before = (stage.store.incarnation()?, stage.losses());
    let promised = stage.promised(&others)?;
    let begin = clock::now();
    stage.store.wipe()?;
    let wiped = clock::now();
    stage.nodes[victim].daemon.kill();
    let restarted = clock::now();
    stage.nodes[victim].launch()?;
    wait_until("live holders to notice", Duration::from_secs(20), || {
        let losses = stage.losses();
        others.iter().all(|node| losses[*node] > before.1[*node]) || !stage.goes_on()
    })?;
    seen.slowest_notice = seen.slowest_notice.max(clock::now().saturating_sub(wiped));
    // Nothing is raised any more once the record is gone, so this is all that was ever promised.
    let promised = promised.max(stage.promised(&others)?);
    let took = stage.recovery(victim, restarted, Duration::from_secs(40))?;
    if !stage.goes_on() {
        return Ok(());
    }
    seen.acquired += 1;
    let first = clock::unix_at(restarted + took);
    stage.verdict.hold("quarantine", first + RUN_AHEAD >= promised, || {
        format!(
            "node {victim} issued {:?} before the end of what others were promised; {RUN_AHEAD:?} \
             are allowed",
            promised.saturating_sub(first)
        )
    });
    stage.verdict.note("quarantine of a restarted node", format!("{took:?}"));
    seen.slowest_recovery = seen.slowest_recovery.max(stage.all_serve(NODES, wiped + took)? + took);
    stage.record_fault("wiped, and SIGKILL", Some(victim), begin);
    let after = stage.store.incarnation()?;
    seen.forgotten += u64::from(after.is_some() && after != before.0);
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let wipes = outcomes.faults.len() as u64;
    // Everybody acquires anew.
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + 3 * wipes);
    let quarantined = outcomes.refused.get("QUARANTINED").copied().unwrap_or(0);
    outcomes.verdict.guard("requests refused as QUARANTINED", quarantined, 1);
}
