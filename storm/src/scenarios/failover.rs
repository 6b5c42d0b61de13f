//! E14: a Redis master takes what it acknowledged last with it, tenures included, and a replica that
//! knows nothing of them is promoted.
//!
//! A holder that the promoted server knows goes on; the one whose acquisition was lost notices, and
//! acquires anew. The namespace is founded by the nodes, and the option `isolation` is 2 s: new tenures
//! then rest for 19 s after a fail-over (isolation, 2 s for servers' clocks, 10 s for those of nodes, and
//! the outage budget) instead of minutes. The old master is a replica that is lost, so that takeovers
//! wait for it: an operator gives it up, and it counts again when it is back.

use std::io;
use std::process::Command;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Namespace, Outcomes, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

const CYCLES: u32 = 10;
const NODES: usize = 3;
/// How much is acknowledged and lost. Sentinels promote nobody who is much further behind.
const TAIL: Duration = Duration::from_millis(1500);
/// A slot is taken when its floor is no further ahead than this.
const RUN_AHEAD: Duration = Duration::from_secs(2);
/// A renewal that fails is tried again within a heartbeat, on a connection that is found anew.
const NOTICED: Duration = Duration::from_secs(1);
/// What new tenures rest for, less what times run ahead, and some seconds to take over what is free.
const RECOVERED: Duration = Duration::from_secs(22);

pub(crate) const ROW: Scenario = Scenario {
    id: "E14",
    title: "a fail-over that loses the last writes",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants, act, judge },
};

/// One worker more than nodes: the one whose acquisition gets lost. A budget that is longer than the
/// shortest, so that what was promised outlasts a fail-over by far.
fn participants(_: &Plan) -> Participants {
    Participants {
        nodes: NODES,
        workers: NODES as u64 + 1,
        lease: Lease { budget: Duration::from_secs(5), ..Lease::SHORT },
        more_flags: ["--election-ttl", "1s"].map(str::to_owned).into(),
        namespace: Namespace::Found,
        setting: Setting::Several,
        ..Participants::default()
    }
}

/// The worst of all cycles.
#[derive(Debug, Default)]
struct Observed {
    lost: u64,
    notice: Duration,
    recovery: Duration,
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let mut seen = Observed::default();
    let cycles = stage.cycles(CYCLES);
    for cycle in 0..cycles {
        if !stage.goes_on() {
            break;
        }
        let quiet = stage.between(Duration::ZERO, Duration::from_secs(1));
        stage.rest(quiet);
        fail_over(stage, &mut seen)?;
        if cycle + 1 < cycles {
            stage.store.pair()?.rejoin()?;
        }
    }
    stage.verdict.guard("tenures that the new master did not know", seen.lost, cycles.into());
    stage.verdict.bar("a fail-over to its notice by who was forgotten", seen.notice, NOTICED);
    stage.verdict.bar("a fail-over to three nodes that issue", seen.recovery, RECOVERED);
    Ok(())
}

fn fail_over(stage: &mut Stage, seen: &mut Observed) -> io::Result<()> {
    // Its new tenure is what gets lost.
    let early = stage.random.usize(0..NODES);
    // It acquires from a master that knows nothing of that.
    let late = (early + stage.random.usize(1..NODES)) % NODES;
    let begin = clock::now();
    // A worker that was released is used again at once, whatever the replica has.
    stage.nodes[early].stop(Duration::from_secs(20))?;
    stage.store.pair()?.cut_off()?;
    let restarted = clock::now();
    stage.nodes[early].launch()?;
    stage.recovery(early, restarted, Duration::from_secs(3))?;
    stage.rest(TAIL);
    let others: Vec<usize> = (0..NODES).filter(|node| *node != late).collect();
    let (before, promised) = (stage.losses(), stage.promised(&others)?);
    seen.lost += stage.store.pair()?.fail_over()?;
    let promoted = clock::now();
    let restarted = restart(stage, late)?;
    wait_until("who was forgotten to notice", Duration::from_secs(20), || {
        stage.losses()[early] > before[early] || !stage.goes_on()
    })?;
    seen.notice = seen.notice.max(clock::now() - promoted);
    give_up_old_master(stage)?;
    let promised = promised.max(stage.promised(&others)?);
    let took = stage.recovery(late, restarted, Duration::from_secs(40))?;
    if !stage.goes_on() {
        return Ok(());
    }
    let first = clock::unix_at(restarted + took);
    stage.verdict.hold("newcomers wait", first + RUN_AHEAD >= promised, || {
        format!(
            "node {late} issued {:?} before the end of what others were promised; {RUN_AHEAD:?} \
             are allowed",
            promised.saturating_sub(first)
        )
    });
    stage.all_serve(NODES, restarted + took)?;
    let known = NODES - early - late;
    stage.verdict.hold("who is known goes on", stage.losses()[known] == before[known], || {
        format!("node {known} lost its worker, which the promoted server knew")
    });
    seen.recovery = seen.recovery.max(clock::now() - promoted);
    stage.record_fault("master killed, its tail lost", Some(early), begin);
    Ok(())
}

/// An operator says that nothing is to wait for it.
fn give_up_old_master(stage: &mut Stage) -> io::Result<()> {
    let (old, url) = (stage.store.pair()?.follower()?, stage.store.url());
    let said = Command::new(&stage.plan.frazil)
        .args(["store", "forget-replica", &old, "--store", &url])
        .output()?;
    let is_done = said.status.success();
    stage.verdict.hold("an old master can be given up", is_done, || format!("{said:?}"));
    Ok(())
}

/// Kills a node and starts it again; when.
fn restart(stage: &mut Stage, node: usize) -> io::Result<Duration> {
    stage.nodes[node].daemon.kill();
    let restarted = clock::now();
    stage.nodes[node].launch()?;
    Ok(restarted)
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let failovers = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + 3 * failovers);
}
