//! The protocol of many examples: a key with a time to live, that names nobody.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use frazil_rig::{AppendOnly, Redis, wait_until};

use crate::clock;
use crate::load::{Load, Pressure};
use crate::node::Node;
use crate::scenario::{Play, Scenario};
use crate::stage::{Fault, Outcomes, Plan};
use crate::store::Kind;
use crate::verdict::Verdict;

const TTL: Duration = Duration::from_secs(1);
const FROZEN: Duration = Duration::from_millis(2200);

pub(super) const TRAP: Scenario = Scenario {
    id: "E01",
    title: "SETNX, EXPIRE and DEL",
    stores: &[Kind::Redis],
    play: Play::Own(run),
};

fn run(plan: &Plan) -> io::Result<Outcomes> {
    let redis = Redis::builder().persistent(AppendOnly::Always).start()?;
    let nodes = [0, 1].map(|number| Node::naive(number, &redis.address(), TTL, &plan.directory));
    let [one, other] = nodes;
    let nodes = [one?, other?];
    nodes.iter().try_for_each(Node::launch)?;
    let doors: Vec<_> = nodes.iter().map(|node| Arc::clone(&node.endpoint)).collect();
    let pressure = Pressure { connections: 2, batch: 50, ..Pressure::default() };
    let load = Load::start(&doors, pressure, plan.seed)?;
    let mut holder = None;
    wait_until("a holder", Duration::from_secs(20), || {
        holder = (0..2).find(|node| load.record.first_answer(*node, Duration::ZERO).is_some());
        holder.is_some()
    })?;
    let holder = holder.unwrap_or_default();
    let began = clock::now();
    nodes[holder].daemon.pause()?;
    clock::rest(FROZEN);
    nodes[holder].daemon.resume()?;
    let frozen =
        Fault { what: "SIGSTOP".to_owned(), node: Some(holder), begin: began, end: clock::now() };
    clock::rest(Duration::from_secs(2));
    let (_, checker) = load.stop()?;
    let (found, _, counts) = checker.finish();
    let mut verdict = Verdict::default();
    verdict.absorb(found);
    Ok(Outcomes {
        counts,
        faults: vec![frozen],
        seconds: (clock::now() - began).as_secs_f64(),
        verdict,
        ..Outcomes::default()
    })
}
