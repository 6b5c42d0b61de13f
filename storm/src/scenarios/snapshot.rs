//! E15: etcd goes back to an old snapshot under nodes that run; and, as the documentation asks for,
//! while they are stopped, with `frazil store quarantine` before they start.
//!
//! That nodes are restored under is not promised in general: it counts on every holder being
//! connected, so none is restarted just then. The namespace is founded by the nodes: a quarantine is
//! then of seconds.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::node::Node;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Namespace, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const CYCLES: u32 = 5;
const NODES: usize = 3;
/// Nodes killed and started again between a snapshot and going back to it.
const CHURN: u32 = 20;
const CHURN_MIN: u32 = 3;
/// A slot is taken when its floor is no further ahead than this.
const RUN_AHEAD: Duration = Duration::from_secs(2);

pub(crate) const ROW: Scenario = Scenario {
    id: "E15",
    title: "etcd restored from an old snapshot",
    stores: &[Kind::Etcd],
    play: Play::Nodes { participants, act, judge },
};

/// Few workers, so that in the snapshot those in use seem free. Whoever crashed may wait for one.
fn participants(_: &Plan) -> Participants {
    let lease = Lease { budget: Duration::from_secs(6), ..Lease::SHORT };
    Participants {
        nodes: NODES,
        workers: 5,
        lease,
        namespace: Namespace::Found,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let snapshot = stage.plan.directory.join("snapshot");
    let (mut gone_back, mut notice, mut recovery) = (0, Duration::ZERO, Duration::ZERO);
    let cycles = stage.cycles(CYCLES);
    for _ in 0..cycles {
        if !stage.goes_on() {
            return Ok(());
        }
        save(stage, &snapshot)?;
        churn(stage)?;
        let (went, noticed, recovered) = go_back(stage, &snapshot)?;
        gone_back += u64::from(went);
        (notice, recovery) = (notice.max(noticed), recovery.max(recovered));
    }
    stage.verdict.guard("restores that lost tenures", gone_back, cycles.into());
    stage.verdict.bar("a restore to its notice by all", notice, Duration::from_secs(2));
    // A quarantine as long as the budget, less what slots may be ahead.
    stage.verdict.bar("a restore to three nodes that issue", recovery, Duration::from_secs(6));
    by_the_book(stage, &snapshot)
}

fn save(stage: &Stage, snapshot: &Path) -> io::Result<()> {
    if snapshot.exists() {
        std::fs::remove_file(snapshot)?;
    }
    stage.store.etcd()?.save_snapshot(snapshot)
}

/// Kills nodes and starts them again: they have other workers and tokens then.
fn churn(stage: &mut Stage) -> io::Result<()> {
    for _ in 0..stage.cycles(CHURN).max(CHURN_MIN) {
        let victim = stage.random.usize(0..NODES);
        stage.nodes[victim].daemon.kill();
        let restarted = clock::now();
        stage.nodes[victim].launch()?;
        stage.recovery(victim, restarted, Duration::from_secs(30))?;
        let pause = stage.between(Duration::from_millis(300), Duration::from_millis(1500));
        stage.rest(pause);
    }
    Ok(())
}

/// Restores under nodes that run. Whether tenures were lost; how long until all had noticed, and
/// until all issued again.
fn go_back(stage: &mut Stage, snapshot: &Path) -> io::Result<(bool, Duration, Duration)> {
    let (losses, tokens) = (stage.losses(), tokens(stage)?);
    let records = |stage: &Stage| {
        stage.store.etcd()?.etcdctl(&["get", "--prefix", "/frazil/default/w", "--print-value-only"])
    };
    let before = records(stage)?;
    let begin = clock::now();
    stage.store.etcd()?.restore_from(snapshot)?;
    let restored = clock::now();
    let after = records(stage)?;
    let is_known = |token: &u64| after.contains(&token.to_string());
    let is_lost = tokens.iter().any(|token| !is_known(token)) && before != after;
    wait_until("holders to notice", Duration::from_secs(20), || {
        let now = stage.losses();
        now.iter().zip(&losses).all(|(now, before)| now > before) || !stage.goes_on()
    })?;
    let noticed = clock::now() - restored;
    wait_until("new tenures", Duration::from_secs(40), || {
        self::tokens(stage).is_ok_and(|now| now.iter().zip(&tokens).all(|(now, old)| now != old))
            || !stage.goes_on()
    })?;
    let now = self::tokens(stage)?;
    let rises = now.iter().zip(&tokens).all(|(now, old)| now > old);
    stage.verdict.hold("no older record is accepted", rises || !stage.goes_on(), || {
        format!("tokens {tokens:?} became {now:?}")
    });
    stage.all_serve(NODES, clock::now())?;
    stage.record_fault("restored", None, begin);
    Ok((is_lost, noticed, clock::now() - restored))
}

/// Nodes stopped, the store restored and quarantined, nodes started.
fn by_the_book(stage: &mut Stage, snapshot: &Path) -> io::Result<()> {
    let begin = clock::now();
    for node in &stage.nodes {
        node.stop(Duration::from_secs(20))?;
    }
    stage.store.etcd()?.restore_from(snapshot)?;
    let output = Command::new(&stage.plan.frazil)
        .args(["store", "quarantine", "--json", "--store", &stage.store.url()])
        .output()?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    stage
        .verdict
        .hold("frazil store quarantine", output.status.success(), || format!("{output:?}"));
    let quarantined = clock::now();
    stage.nodes.iter().try_for_each(Node::launch)?;
    let took = stage.all_serve(NODES, quarantined)?;
    stage.verdict.note("store quarantine said", told.trim());
    // What it asks for is the window, which is the budget, and two seconds for clocks.
    let least = stage.lease.budget.saturating_sub(RUN_AHEAD);
    stage.verdict.hold("a quarantine is waited for", took >= least, || {
        format!("nodes issued {took:?} after the quarantine; {least:?} is the least")
    });
    stage.record_fault("stopped, restored, quarantined", None, begin);
    Ok(())
}

fn tokens(stage: &Stage) -> io::Result<Vec<u64>> {
    let token = |node: &Node| {
        let info = node.info()?;
        let token = info["lanes"][0]["token"].as_str().and_then(|token| token.parse().ok());
        token.ok_or_else(|| io::Error::other(format!("no token in {info}")))
    };
    stage.nodes.iter().map(token).collect()
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    let restores = outcomes.faults.len() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, 3 + 3 * restores);
}
