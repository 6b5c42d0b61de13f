//! E43: the store forgets everything, and again while those who lost their workers have no others yet
//! and still issue up to their old horizons. New nodes then want the few workers there are, and have a
//! shorter way to the store.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Namespace, Outcomes, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

const HOLDERS: [usize; 3] = [0, 1, 2];
/// More than workers: those who lost theirs do not get all of them back.
const NEWCOMERS: [usize; 6] = [3, 4, 5, 6, 7, 8];
const WORKERS: u64 = 4;
const NOTICED: Duration = Duration::from_secs(20);
/// What holders' requests and answers take each from the second wipe on: newcomers are quicker.
const SLOW: Duration = Duration::from_secs(1);
/// Horizons are at most a budget away, and then nobody is in the way.
const RECOVERED: Duration = Duration::from_secs(100);

pub(crate) const ROW: Scenario = Scenario {
    id: "E43",
    title: "the store forgets everything twice",
    stores: &Kind::ALL,
    play: Play::Nodes { participants, act, judge },
};

/// Horizons that are further away from the beginning than newcomers wait for. They renew more often, so
/// that they are the first to be there.
fn participants(plan: &Plan) -> Participants {
    // A new directory is used at once, a new namespace elsewhere after 17 s.
    let ttl = Duration::from_secs(if plan.store == Kind::File { 10 } else { 26 });
    let lease = Lease { ttl, heartbeat: Duration::from_secs(3), budget: 3 * ttl };
    let often = Lease { heartbeat: Duration::from_millis(500), ..lease };
    Participants {
        nodes: HOLDERS.len() + NEWCOMERS.len(),
        late: NEWCOMERS.len(),
        workers: WORKERS,
        lease,
        own_leases: NEWCOMERS.map(|node| (node, often)).into(),
        namespace: Namespace::Found,
        // With sessions of ZooKeeper that are as long as these leases.
        setting: Setting::Plain,
        pressure: Pressure {
            connections: 2,
            pause: Duration::from_millis(10),
            ..Pressure::default()
        },
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let first = stage.store.incarnation()?;
    let begin = clock::now();
    let noticed = forget(stage)?;
    let second = stage.store.incarnation()?;
    let promised = stage.promised(&HOLDERS)?;
    for node in HOLDERS {
        if let Some(proxy) = &stage.nodes[node].link.proxy {
            proxy.delay(SLOW);
        }
    }
    let again = clock::now();
    stage.store.clear()?;
    for node in NEWCOMERS.iter().filter(|node| !stage.nodes[**node].daemon.runs()) {
        stage.nodes[*node].launch()?;
    }
    stage.record_fault("wiped twice", None, begin);
    let issuing = HOLDERS.iter().filter(|node| stage.issuable(**node) > 0.0).count() as u64;
    stage.rest_until(promised);
    recover(stage, again);
    let third = stage.store.incarnation()?;
    let wipes = u64::from(second != first) + u64::from(third.is_some() && third != second);
    stage.verdict.guard("wipes after which the namespace was another one", wipes, 2);
    stage.verdict.guard("first wipes that all holders noticed", noticed.into(), 1);
    stage.verdict.guard("nodes that issued on at the second wipe", issuing, 1);
    Ok(())
}

/// Wipes the store, and waits until there is something to be wiped again. Whether all holders noticed.
fn forget(stage: &mut Stage) -> io::Result<bool> {
    let losses = stage.losses();
    stage.store.clear()?;
    // A directory that is gone is made by one who starts; elsewhere one who saw the second namespace
    // would know the third for what it is.
    let made = usize::from(stage.plan.store == Kind::File);
    for node in &NEWCOMERS[..made] {
        stage.nodes[*node].launch()?;
    }
    let noticed = wait_until("holders to notice", NOTICED, || {
        let now = stage.losses();
        HOLDERS.iter().all(|node| now[*node] > losses[*node]) || !stage.goes_on()
    });
    wait_until("a namespace again", NOTICED, || {
        stage.store.incarnation().is_ok_and(|found| found.is_some()) || !stage.goes_on()
    })?;
    // For all of them to have seen it.
    let pause = stage.between(Duration::from_secs(1), Duration::from_secs(3));
    stage.rest(pause);
    Ok(noticed.is_ok())
}

/// Waits until all workers are used, by whomever.
fn recover(stage: &mut Stage, again: Duration) {
    let limit = (again + RECOVERED).saturating_sub(clock::now());
    let wanted = usize::try_from(WORKERS).unwrap_or(usize::MAX);
    let recovered = wait_until("all workers to be used", limit, || {
        stage.serving().len() >= wanted || !stage.goes_on()
    });
    let (took, serving) = (clock::now() - again, stage.serving().len());
    stage.verdict.note("second wipe to the use of all workers", format!("{took:?}"));
    stage.verdict.hold("bounded recovery", recovered.is_ok() || !stage.goes_on(), || {
        format!("{serving} nodes issue {took:?} after the second wipe, with {WORKERS} workers")
    });
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}
