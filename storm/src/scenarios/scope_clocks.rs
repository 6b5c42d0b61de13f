//! E47: a strict scope answers although clocks are wrong: 9 s ahead of Redis, which is trusted; a minute
//! back, with `--rollback ride`; an hour ahead for 3 s before its leader is killed. And with two nodes
//! of one name.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::http::ask_once;
use crate::scenario::{Play, Scenario};
use crate::scenarios::scoped;
use crate::stage::{Lease, Names, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

const BOTH: [usize; 2] = [0, 1];
const AHEAD: Duration = Duration::from_secs(9);
const BACK: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const LASTS: Duration = Duration::from_secs(3);

pub(crate) const AHEAD_OF_STORE: Scenario = Scenario {
    id: "E47",
    title: "a strict scope, clocks 9 s ahead",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants: cast_ahead, act: act_ahead, judge: scoped::judge },
};

pub(crate) const RIDE: Scenario = Scenario {
    id: "E47b",
    title: "a strict scope rides on",
    // Others have a clock that contradicts.
    stores: &[Kind::Etcd, Kind::File],
    play: Play::Nodes { participants: cast_ride, act: act_ride, judge: scoped::judge },
};

pub(crate) const HOUR_AHEAD: Scenario = Scenario {
    id: "E47c",
    title: "a strict scope, its leader an hour ahead",
    stores: &[Kind::Etcd, Kind::Zk, Kind::File],
    play: Play::Nodes { participants: scoped::participants, act: act_hour, judge: scoped::judge },
};

pub(crate) const ONE_NAME: Scenario = Scenario {
    id: "E47d",
    title: "a strict scope of two with one name",
    stores: &Kind::ALL,
    play: Play::Nodes { participants: cast_named, act: act_named, judge: scoped::judge },
};

fn cast_ahead(plan: &Plan) -> Participants {
    let ms = i64::try_from(AHEAD.as_millis()).unwrap_or(i64::MAX);
    let own_clocks = BOTH.map(|node| (node, ms)).into();
    Participants { own_clocks, setting: Setting::Plain, ..scoped::participants(plan) }
}

fn act_ahead(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    let seen = clocks_off(stage, &BOTH, AHEAD)?;
    scoped::answers(stage, &BOTH, begin);
    stage.record_fault("clocks 9 s ahead of the store's", None, begin);
    stage.verdict.guard("clocks that are ahead, by the node's word", seen, 2);
    Ok(())
}

fn cast_ride(plan: &Plan) -> Participants {
    let lease = Lease::DEFAULT;
    // Horizons that are further away than the clock goes back.
    let mut participants =
        Participants { lease, window: lease.budget, ..scoped::participants(plan) };
    participants.more_flags.extend(["--rollback", "ride"].map(str::to_owned));
    participants
}

fn act_ride(stage: &mut Stage) -> io::Result<()> {
    scoped::some_leader(stage, scoped::ANSWERS)?;
    let begin = clock::now();
    for node in &stage.nodes {
        node.endpoint.tolerate(BACK, Duration::ZERO);
        node.clock.set_back(BACK)?;
    }
    // What was leased before is used up by then.
    stage.rest(Duration::from_secs(5));
    let seen = clocks_off(stage, &BOTH, BACK)?;
    let since = clock::now();
    scoped::answers(stage, &BOTH, since);
    stage.record_fault("clocks a minute back", None, begin);
    stage.verdict.guard("clocks that are behind, by the node's word", seen, 2);
    Ok(())
}

fn act_hour(stage: &mut Stage) -> io::Result<()> {
    let leader = scoped::some_leader(stage, scoped::ANSWERS)?;
    let begin = clock::now();
    stage.nodes[leader].clock.set_ahead(HOUR)?;
    stage.rest(LASTS / 2);
    let seen = clocks_off(stage, &[leader], HOUR)?;
    stage.rest(LASTS / 2);
    stage.nodes[leader].clock.set_right()?;
    stage.rest(Duration::from_secs(1));
    stage.nodes[leader].daemon.kill();
    let killed = clock::now();
    stage.record_fault("its clock an hour ahead for 3 s, and SIGKILL", Some(leader), begin);
    scoped::answers(stage, &[1 - leader], killed);
    stage.verdict.guard("clocks that were ahead, by the node's word", seen, 1);
    Ok(())
}

fn cast_named(plan: &Plan) -> Participants {
    Participants { names: Names::Same, ..scoped::participants(plan) }
}

fn act_named(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    scoped::answers(stage, &BOTH, begin);
    stage.record_fault("two nodes of one name", None, begin);
    let is_same = name(stage, 0)?.is_string() && name(stage, 0)? == name(stage, 1)?;
    stage.verdict.guard("nodes that say that they have one name", is_same.into(), 1);
    Ok(())
}

/// What a node is called, by its own word.
fn name(stage: &Stage, node: usize) -> io::Result<serde_json::Value> {
    let (_, body) = ask_once(stage.nodes[node].endpoint.address, "POST", "/v1/ids")?;
    let answer: serde_json::Value = serde_json::from_str(&body)?;
    Ok(answer["metadata"]["node"].clone())
}

/// How many of these nodes say that their clocks are so far off, to a second.
fn clocks_off(stage: &Stage, nodes: &[usize], by: Duration) -> io::Result<u64> {
    let mut off = 0;
    for &node in nodes {
        let apart = stage.nodes[node].clock_unix_ms()?.abs_diff(clock::unix_ms());
        off += u64::from(u128::from(apart).abs_diff(by.as_millis()) < 1000);
    }
    Ok(off)
}
