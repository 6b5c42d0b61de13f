//! E54: with `durability=wait-all` one of two replicas of Redis is lost, which its sentinels still
//! know, and a node dies. Running nodes go on beyond what they had, and name it. A new node that must
//! take over the dead one's worker waits, says for which server, and starts once an operator has given
//! that one up; not before.

use std::io;
use std::process::Command;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::http::ask_once;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Lease, Outcomes, Participants, Plan, Stage};
use crate::store::{Kind, Setting};

const RUNNING: [usize; 2] = [0, 1];
/// It is killed, and there is no free worker but its own.
const DEAD: usize = 2;
const NEWCOMER: usize = 3;
/// How long is looked on after the old horizons have passed.
const BEYOND: Duration = Duration::from_secs(5);
/// The dead one's horizon has passed by then, and a takeover was tried.
const SAYS: Duration = Duration::from_secs(40);
/// How much longer a takeover is seen to wait.
const WAITS_ON: Duration = Duration::from_secs(10);
const STARTS: Duration = Duration::from_secs(60);
/// Nodes look for replicas every 10 s.
const SEEN: Duration = Duration::from_secs(20);
/// Where a node names it.
const PAGES: [&str; 2] = ["/readyz?verbose", "/metrics"];

pub(crate) const ROW: Scenario = Scenario {
    id: "E54",
    title: "a Redis replica is lost",
    stores: &[Kind::Redis],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    let seconds = Duration::from_secs;
    Participants {
        nodes: 4,
        late: 1,
        workers: 3,
        lease: Lease { ttl: seconds(3), heartbeat: seconds(1), budget: seconds(9) },
        pressure: Pressure::gentle(),
        setting: Setting::Replicas,
        ..Participants::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (since, promised) = (clock::now(), stage.promised(&RUNNING)?);
    let begin = clock::now();
    let lost = stage.store.pair()?.lose_replica()?;
    stage.nodes[DEAD].daemon.kill();
    stage.nodes[NEWCOMER].launch()?;
    is_named_by_all(stage, lost);
    waits(stage, begin, lost);
    stage.rest_until(promised + BEYOND);
    stage.record_fault("replica killed", None, begin);
    give_up(stage, lost)?;
    stage.nothing_refused(&RUNNING, since, begin);
    Ok(())
}

/// Running nodes are ready, and name it on both pages; and so does the doctor, with what to do.
fn is_named_by_all(stage: &mut Stage, lost: u16) {
    let told = wait_until("a lost replica to be named", SEEN, || {
        RUNNING.iter().all(|node| PAGES.iter().all(|page| names(stage, *node, page, lost)))
            || !stage.goes_on()
    });
    stage.verdict.hold("a lost replica is named", told.is_ok(), || {
        format!("not all of the nodes {RUNNING:?} name 127.0.0.1:{lost} in all of {PAGES:?}")
    });
    let said = frazil(stage, &["doctor", "--store", &stage.store.url()]).unwrap_or_default();
    let is_told = is_named(&said, lost) && said.contains("frazil store forget-replica");
    stage.verdict.hold("the doctor names a lost replica", is_told, || said);
}

/// The new node waits for the replica, and says so; and it waits on.
fn waits(stage: &mut Stage, begin: Duration, lost: u16) {
    let left = (begin + SAYS).saturating_sub(clock::now());
    let said = wait_until("a takeover to say what it waits for", left, || {
        says(stage, NEWCOMER, lost) || !stage.goes_on()
    });
    stage.verdict.hold("a takeover says what it waits for", said.is_ok(), || {
        let page = ask_once(stage.nodes[NEWCOMER].endpoint.address, "GET", PAGES[0]);
        format!("the new node does not say that it waits for 127.0.0.1:{lost}: {page:?}")
    });
    stage.rest(WAITS_ON);
    let began = stage.load.record.first_answer(NEWCOMER, begin);
    stage.verdict.hold("a takeover waits for all replicas", began.is_none(), || {
        "the new node issued before anybody had given the lost replica up".to_owned()
    });
}

/// An operator gives it up: the new node starts, and nobody names it any more.
fn give_up(stage: &mut Stage, lost: u16) -> io::Result<()> {
    let said = clock::now();
    let (address, url) = (format!("127.0.0.1:{lost}"), stage.store.url());
    let answer = frazil(stage, &["store", "forget-replica", &address, "--store", &url])?;
    stage.verdict.note("it was given up", answer.trim());
    let took = stage.starts_within(NEWCOMER, said, STARTS);
    stage.verdict.bar("given up to the first ID of a new node", took.unwrap_or(STARTS), STARTS);
    let silent = wait_until("nodes to see that", SEEN, || {
        !RUNNING.iter().any(|node| PAGES.iter().any(|page| names(stage, *node, page, lost)))
            || !stage.goes_on()
    });
    stage.verdict.hold("a replica that was given up is not missed", silent.is_ok(), || {
        format!("nodes still name 127.0.0.1:{lost} in {PAGES:?}")
    });
    Ok(())
}

/// What the command under test prints.
fn frazil(stage: &Stage, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(&stage.plan.frazil).args(arguments).output()?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// Whether a node that is well names a replica on a page.
fn names(stage: &Stage, node: usize, page: &str, port: u16) -> bool {
    ask_once(stage.nodes[node].endpoint.address, "GET", page)
        .is_ok_and(|(status, body)| status == 200 && is_named(&body, port))
}

/// Whether a node that is not ready says that it waits for a replica to settle.
fn says(stage: &Stage, node: usize, port: u16) -> bool {
    ask_once(stage.nodes[node].endpoint.address, "GET", PAGES[0]).is_ok_and(|(status, body)| {
        let line = body.lines().find(|line| line.contains("taken over"));
        status == 503 && line.is_some_and(|line| is_named(line, port))
    })
}

/// Whether a text has the address of a port, and not of a longer one.
fn is_named(text: &str, port: u16) -> bool {
    let address = format!(":{port}");
    let mut after = text.split(&address).skip(1).map(|rest| rest.bytes().next());
    after.any(|next| !next.is_some_and(|byte| byte.is_ascii_digit()))
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_named_by_its_own_port() {
        assert!(is_named("lost: 127.0.0.1:6380", 6380));
        assert!(is_named("{replica=\"127.0.0.1:6380\"} 0", 6380));
        assert!(!is_named("lost: 127.0.0.1:63801", 6380));
        assert!(!is_named("ready", 6380));
    }
}
