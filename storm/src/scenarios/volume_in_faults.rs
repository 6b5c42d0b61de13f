//! E07b: a billion IDs while nodes are killed and frozen, clocks are set back and the store is away.

use std::io;
use std::time::Duration;

use super::volume;
use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const NODES: usize = 3;
/// Each kind of fault comes at least five times at full length.
const FAULTS_MIN: u32 = 20;
/// More than twice the TTL.
const FROZEN: Duration = Duration::from_millis(2200);
/// Less than the outage budget, more than the TTL.
const STORE_AWAY: Duration = Duration::from_millis(1500);
const SET_BACK: Duration = Duration::from_secs(5);
const SET_BACK_FOR: Duration = Duration::from_millis(700);
/// A node whose clock was set back goes on at 7/8 of the speed of time.
const LAGS: Duration = SET_BACK_FOR.checked_div(8).unwrap();

pub(crate) const ROW: Scenario = Scenario {
    id: "E07b",
    title: "volume while faults last",
    stores: &Kind::SERVERS,
    play: Play::Nodes { participants, act, judge },
};

/// Workers enough that those which rest after a crash are not missed.
fn participants(_: &Plan) -> Participants {
    Participants {
        nodes: NODES,
        workers: 1024,
        more_flags: vec!["--rollback".to_owned(), "ride".to_owned()],
        pressure: volume::pressure(),
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (begin, goal) = (clock::now(), volume::goal(&stage.plan));
    let faults_min = stage.cycles(FAULTS_MIN) as usize;
    while stage.goes_on() && (stage.load.ids() < goal || stage.faults.len() < faults_min) {
        volume::check_limit(stage, begin)?;
        let victim = stage.random.usize(0..NODES);
        match stage.faults.len() % 4 {
            0 => kill(stage, victim)?,
            1 => freeze(stage, victim)?,
            2 => set_back(stage, victim)?,
            _ => take_store_away(stage)?,
        }
        stage.all_serve(NODES, clock::now())?;
    }
    volume::note_rate(stage, begin);
    Ok(())
}

fn kill(stage: &mut Stage, victim: usize) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[victim].daemon.kill();
    let killed = clock::now();
    stage.nodes[victim].launch()?;
    stage.recovery(victim, killed, Duration::from_secs(30))?;
    stage.record_fault("SIGKILL", Some(victim), begin);
    Ok(())
}

fn freeze(stage: &mut Stage, victim: usize) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[victim].daemon.pause()?;
    stage.rest(FROZEN);
    stage.nodes[victim].daemon.resume()?;
    stage.record_fault("SIGSTOP", Some(victim), begin);
    Ok(())
}

fn set_back(stage: &mut Stage, victim: usize) -> io::Result<()> {
    let begin = clock::now();
    stage.nodes[victim].endpoint.tolerate(LAGS, Duration::ZERO);
    stage.nodes[victim].clock.set_back(SET_BACK)?;
    stage.rest(SET_BACK_FOR);
    stage.nodes[victim].clock.set_right()?;
    stage.record_fault("clock -5 s", Some(victim), begin);
    Ok(())
}

fn take_store_away(stage: &mut Stage) -> io::Result<()> {
    let none = || io::Error::other("no server to do this to");
    let begin = clock::now();
    stage.store.daemon().ok_or_else(none)?.pause()?;
    stage.rest(STORE_AWAY);
    stage.store.daemon().ok_or_else(none)?.resume()?;
    stage.record_fault("store frozen", None, begin);
    Ok(())
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    volume::judge(plan, outcomes);
    let kills = outcomes.faults.iter().filter(|fault| fault.what == "SIGKILL").count() as u64;
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, NODES as u64 + kills);
}
