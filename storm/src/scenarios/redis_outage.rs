//! E41: Redis, as it is installed, is down for a while under nodes that can go on for longer; or a
//! replica takes its place.
//!
//! Running nodes must not notice, then or when their old horizons have passed, and a node that is new
//! starts within a minute of the store's return. After a fail-over newcomers may have to wait, so none
//! is asked for.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Outcomes, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

const RUNNING: [usize; 2] = [0, 1];
const NEWCOMER: usize = 2;
const STARTS: Duration = Duration::from_secs(60);
/// How much longer than the outage nodes can go on.
const MARGIN: Duration = Duration::from_secs(10);
/// How long is looked on after the old horizons have passed.
const BEYOND: Duration = Duration::from_secs(3);

pub(crate) const ROW: Scenario = Scenario {
    id: "E41",
    title: "Redis is down for a while",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants, act, judge },
};

pub(crate) const FAIL_OVER: Scenario = Scenario {
    id: "E41b",
    title: "a Redis replica takes over",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants: cast_pair, act: act_pair, judge },
};

/// A TTL that is shorter than the outage: every lease has lapsed when the store is back.
fn participants(plan: &Plan) -> Participants {
    let budget = Duration::from_secs(if plan.scale >= 1.0 { 600 } else { 120 });
    Participants {
        nodes: 3,
        late: 1,
        lease: Lease { ttl: Duration::from_secs(10), heartbeat: Duration::from_secs(3), budget },
        window: budget,
        pressure: Pressure::gentle(),
        setting: Setting::Plain,
        ..Participants::default()
    }
}

fn cast_pair(plan: &Plan) -> Participants {
    Participants { nodes: 2, late: 0, setting: Setting::PlainPair, ..participants(plan) }
}

/// How long Redis is down, in seconds.
fn outages(scale: f64) -> &'static [u64] {
    match scale {
        scale if scale >= 1.0 => &[14, 60, 300],
        scale if scale >= 0.5 => &[14, 60],
        _ => &[14],
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (mut silent, mut slowest) = (0, Duration::ZERO);
    let outages = outages(stage.plan.scale);
    for &seconds in outages {
        let down = Duration::from_secs(seconds);
        stage.can_outlast(&RUNNING, down + MARGIN)?;
        let (since, promised) = (clock::now(), stage.promised(&RUNNING)?);
        let begin = clock::now();
        silent += u64::from(go_down(stage, down)?);
        let back = clock::now();
        stage.nodes[NEWCOMER].launch()?;
        let took = stage.starts_within(NEWCOMER, back, STARTS);
        slowest = slowest.max(took.unwrap_or(STARTS));
        stage.rest_until(promised + BEYOND);
        stage.nothing_refused(&RUNNING, since, begin);
        if stage.verdict.finding_count > 0 || !stage.goes_on() {
            return Ok(());
        }
        stage.nodes[NEWCOMER].stop(Duration::from_secs(20))?;
    }
    let wanted = outages.len() as u64;
    stage.verdict.guard("outages that were seen, of a server that started anew", silent, wanted);
    stage.verdict.bar("Redis back to the first ID of a new node", slowest, STARTS);
    Ok(())
}

/// Kills Redis and starts it again after a time. Whether that was so, by what it says itself.
fn go_down(stage: &mut Stage, down: Duration) -> io::Result<bool> {
    let (begin, before) = (clock::now(), run_id(stage)?);
    if let Some(daemon) = stage.store.daemon() {
        daemon.kill();
    }
    stage.rest(down);
    let was_silent = stage.store.is_silent();
    stage.store.restart()?;
    stage.record_fault(format!("killed for {} s", down.as_secs()), None, begin);
    Ok(was_silent && run_id(stage)? != before)
}

fn run_id(stage: &Stage) -> io::Result<String> {
    stage.store.redis()?.0.info("run_id")
}

fn act_pair(stage: &mut Stage) -> io::Result<()> {
    let cycles = stage.cycles(3);
    for cycle in 0..cycles {
        stage.can_outlast(&RUNNING, MARGIN)?;
        let (since, promised) = (clock::now(), stage.promised(&RUNNING)?);
        let begin = clock::now();
        let lost = stage.store.pair()?.fail_over()?;
        stage.record_fault("master killed, its replica promoted", None, begin);
        stage.verdict.note("tenures that the new master did not know", lost);
        stage.rest_until(promised + BEYOND);
        stage.nothing_refused(&RUNNING, since, begin);
        if stage.verdict.finding_count > 0 || !stage.goes_on() {
            return Ok(());
        }
        if cycle + 1 < cycles {
            stage.store.pair()?.rejoin()?;
        }
    }
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}
