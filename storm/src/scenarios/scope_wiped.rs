//! E46: the store forgets everything while one of two nodes, whose clocks are 1.5 s apart, leads a
//! strict scope: the one that is ahead. If it goes on to lead it is stopped, so that the other one must.
//!
//! Every ID of the scope is larger than all that were received before it was asked for, at any node.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::scenario::{Play, Scenario};
use crate::scenarios::scoped;
use crate::stage::{Lease, Namespace, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

/// Followed at once, since it is less than two seconds.
const APART: Duration = Duration::from_millis(1500);
const CYCLES: u32 = 5;
/// A leader that goes on for longer has lost nothing.
const NOTICED: Duration = Duration::from_secs(6);
/// Candidates of a forgotten namespace wait for 19 s of silence; a leader that is stopped then, and
/// what it was promised, cost another TTL and window.
const LEADS: Duration = Duration::from_secs(60);

pub(crate) const ROW: Scenario = Scenario {
    id: "E46",
    title: "a strict scope is forgotten",
    stores: &Kind::SERVERS,
    play: Play::Nodes { participants, act, judge: scoped::judge },
};

/// Nodes that go on for half a minute with the workers that were forgotten: it is the scope's order
/// that is looked at. The namespace is founded by them, so that its slots rest for no longer.
fn participants(plan: &Plan) -> Participants {
    let seconds = Duration::from_secs;
    let lease = Lease { ttl: seconds(10), heartbeat: seconds(2), budget: seconds(30) };
    // With sessions of ZooKeeper that are as long as these leases.
    let setting = Setting::Plain;
    Participants { lease, setting, namespace: Namespace::Found, ..scoped::participants(plan) }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut forgotten, mut moved) = (0, 0);
    for node in &stage.nodes {
        // What is received goes on from what was, whoever leads.
        node.endpoint.tolerate(APART, 2 * APART + Duration::from_secs(3));
    }
    let cycles = stage.cycles(CYCLES);
    for _ in 0..cycles {
        let old = scoped::some_leader(stage, LEADS)?;
        stage.nodes[old].clock.set_ahead(APART)?;
        let quiet = stage.between(Duration::from_secs(2), Duration::from_secs(4));
        stage.rest(quiet);
        let before = stage.store.incarnation()?;
        moved += u64::from(forget(stage, old)?);
        let after = stage.store.incarnation()?;
        forgotten += u64::from(after.is_some() && after != before);
        // Its clock goes back: as a new process it does not mind.
        stage.nodes[old].daemon.kill();
        stage.nodes[old].clock.set_right()?;
        let restarted = clock::now();
        stage.nodes[old].launch()?;
        stage.starts_within(old, restarted, Duration::from_secs(60));
    }
    stage.verdict.guard(
        "wipes after which the namespace was another one",
        forgotten,
        cycles.into(),
    );
    stage.verdict.guard("wipes after which the other node led", moved, cycles.into());
    Ok(())
}

/// Wipes the store, and waits until the other node leads and answers. Whether it does.
fn forget(stage: &mut Stage, old: usize) -> io::Result<bool> {
    let (begin, other) = (clock::now(), 1 - old);
    stage.store.clear()?;
    // It may be a leader still, who has not noticed.
    let _ = wait_until("its leader to notice", NOTICED, || {
        scoped::leader(stage) != Some(old) || !stage.goes_on()
    });
    if scoped::some_leader(stage, LEADS)? == old {
        stage.nodes[old].stop(Duration::from_secs(20))?;
    }
    let left = (begin + LEADS).saturating_sub(clock::now());
    let moved = wait_until("the other node to lead", left, || {
        scoped::leader(stage) == Some(other) || !stage.goes_on()
    });
    let led = clock::now();
    stage.verdict.note("wipe to another leader", format!("{:?}", led - begin));
    stage.starts_within(other, led, scoped::ANSWERS);
    // What it gives first is what could be lower.
    stage.rest(Duration::from_secs(3));
    stage.record_fault("wiped, and its leader's clock 1.5 s ahead", Some(old), begin);
    Ok(moved.is_ok())
}
