//! Two nodes and one worker: one holds it, the other wants it.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario};
use crate::stage::{Lease, Names, Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const HOLDER: usize = 0;
const SPARE: usize = 1;
/// Beyond the horizon of a lease that is cut off.
const CUT_OFF: Duration = Duration::from_secs(6);
/// What a holder can go on for whose horizon has grown.
const GROWN: Duration = Duration::from_secs(5);
/// Less than that.
const FROZEN: Duration = Duration::from_secs(3);
const AFTERWARDS: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(20);

const fn trap(
    title: &'static str,
    stores: &'static [Kind],
    participants: fn(&Plan) -> Participants,
    act: fn(&mut Stage) -> io::Result<()>,
) -> Scenario {
    Scenario { id: "E01", title, stores, play: Play::Nodes { participants, act, judge } }
}

pub(super) const CUT: Scenario = trap("the holder is cut off", &Kind::SERVERS, short, cut);
pub(super) const LONG_CUT: Scenario =
    trap("the holder is cut off for long", &Kind::SERVERS, middling, cut_late);
pub(super) const FREEZE: Scenario = trap("the holder is frozen", &Kind::SERVERS, short, freeze);
pub(super) const NAMESAKE: Scenario = trap("two of one name", &Kind::ALL, namesakes, both);
pub(super) const DRAIN: Scenario = trap("the holder is stopped", &Kind::ALL, draining, drain);
pub(super) const AMNESIA: Scenario = trap("the store is wiped", &[Kind::Redis], middling, amnesia);
pub(super) const KILL: Scenario = trap("the holder is killed", &Kind::ALL, short, kill);

fn short(_: &Plan) -> Participants {
    let pressure = Pressure { connections: 2, batch: 50, ..Pressure::default() };
    Participants { nodes: 2, workers: 1, late: 1, pressure, ..Participants::default() }
}

fn middling(plan: &Plan) -> Participants {
    let lease = Lease {
        ttl: Duration::from_secs(2),
        heartbeat: Duration::from_millis(600),
        budget: Duration::from_secs(6),
    };
    Participants { lease, ..short(plan) }
}

fn namesakes(plan: &Plan) -> Participants {
    Participants { workers: 2, names: Names::Same, ..short(plan) }
}

fn draining(plan: &Plan) -> Participants {
    Participants { drain_delay: Duration::from_secs(2), ..short(plan) }
}

/// Cuts the holder off while its clients still reach it.
fn cut(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    let proxy = stage.nodes[HOLDER].link.proxy.as_ref();
    let proxy = proxy.ok_or_else(|| io::Error::other("no network to cut"))?;
    proxy.black_hole();
    stage.nodes[SPARE].launch()?;
    stage.rest(CUT_OFF);
    if let Some(proxy) = &stage.nodes[HOLDER].link.proxy {
        proxy.heal();
    }
    stage.record_fault("cut off", Some(HOLDER), begin);
    stage.rest(AFTERWARDS);
    Ok(())
}

/// The same to a holder whose horizon is far beyond its presence: it grows with a tenure.
fn cut_late(stage: &mut Stage) -> io::Result<()> {
    stage.can_outlast(&[HOLDER], GROWN)?;
    cut(stage)
}

/// Freezes the holder until the other one has issued.
fn freeze(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[HOLDER].daemon.pause()?;
    stage.nodes[SPARE].launch()?;
    spare_serves(stage, begin)?;
    stage.nodes[HOLDER].daemon.resume()?;
    stage.record_fault("SIGSTOP", Some(HOLDER), begin);
    stage.rest(AFTERWARDS);
    Ok(())
}

fn both(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[SPARE].launch()?;
    spare_serves(stage, begin)?;
    stage.record_fault("a second node of the name", Some(SPARE), begin);
    stage.rest(AFTERWARDS);
    Ok(())
}

/// Stops the holder, which serves on for a while, as balancers need it.
fn drain(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[SPARE].launch()?;
    stage.nodes[HOLDER].stop(LIMIT)?;
    stage.record_fault("SIGTERM", Some(HOLDER), begin);
    spare_serves(stage, begin)?;
    stage.rest(AFTERWARDS);
    Ok(())
}

/// Takes everything from the store while the holder is frozen and cannot speak up.
fn amnesia(stage: &mut Stage) -> io::Result<()> {
    stage.can_outlast(&[HOLDER], GROWN)?;
    let begin = clock::now();
    stage.nodes[HOLDER].daemon.pause()?;
    stage.store.wipe()?;
    stage.nodes[SPARE].launch()?;
    stage.rest(FROZEN);
    stage.nodes[HOLDER].daemon.resume()?;
    stage.record_fault("SIGSTOP and a wiped store", Some(HOLDER), begin);
    stage.rest(AFTERWARDS);
    Ok(())
}

fn kill(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[SPARE].launch()?;
    stage.nodes[HOLDER].daemon.kill();
    spare_serves(stage, begin)?;
    stage.record_fault("SIGKILL", Some(HOLDER), begin);
    stage.rest(AFTERWARDS);
    Ok(())
}

fn spare_serves(stage: &Stage, since: Duration) -> io::Result<()> {
    wait_until("the other node to issue", LIMIT, || {
        stage.load.record.first_answer(SPARE, since).is_some() || !stage.goes_on()
    })
}

fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("IDs", outcomes.counts.ids, 10_000);
    outcomes.verdict.guard("faults", outcomes.faults.len() as u64, 1);
}
