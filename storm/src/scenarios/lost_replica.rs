//! E54: with `durability=wait-all` one of two replicas of Redis is lost, which its sentinels still
//! know. Nodes go on beyond what they had, and say which one is missing.

use std::io;
use std::time::Duration;

use crate::clock;
use crate::http::ask_once;
use crate::load::Pressure;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Cast, Lease, Outcomes, Plan, Stage};
use crate::store::{Kind, Setting};

const RUNNING: [usize; 2] = [0, 1];
const BEYOND: Duration = Duration::from_secs(5);
/// Where a node may name it.
const PAGES: [&str; 2] = ["/readyz?verbose", "/metrics"];

pub(crate) const ROW: Scenario = Scenario {
    id: "E54",
    title: "a Redis replica is lost",
    stores: &[Kind::Redis],
    play: Play::Nodes { cast, act, judge },
};

fn cast(_: &Plan) -> Cast {
    let seconds = Duration::from_secs;
    Cast {
        nodes: RUNNING.len(),
        lease: Lease { ttl: seconds(3), heartbeat: seconds(1), budget: seconds(9) },
        pressure: Pressure::gentle(),
        setting: Setting::Replicas,
        ..Cast::default()
    }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let (since, promised) = (clock::now(), stage.promised(&RUNNING)?);
    let begin = clock::now();
    let lost = stage.store.pair()?.lose_replica()?;
    stage.rest_until(promised + BEYOND);
    stage.was("replica killed", None, begin);
    stage.nothing_refused(&RUNNING, since, begin);
    let told = RUNNING.iter().filter(|node| names(stage, **node, lost)).count();
    stage.verdict.hold("a lost replica is named", told == RUNNING.len(), || {
        format!("{told} of {} nodes name 127.0.0.1:{lost} in {PAGES:?}", RUNNING.len())
    });
    Ok(())
}

/// Whether a node names a replica anywhere.
fn names(stage: &Stage, node: usize, port: u16) -> bool {
    PAGES.iter().any(|page| {
        ask_once(stage.nodes[node].door.address, "GET", page)
            .is_ok_and(|(_, body)| is_named(&body, port))
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
