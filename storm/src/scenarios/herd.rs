//! E24: 1,024 leases are asked for at once, and there are 1,024 workers.
//!
//! The clients are the lanes of 16 nodes: a thousand processes would measure the machine. Each lane
//! seeks a worker of its own, with nothing agreed between them. Times are from the first start to the
//! moment when all hold one, with the starts of the processes; leases are as long as in production, so
//! that what is counted are acquisitions and not renewals. At full scale there are three herds.

use std::collections::BTreeSet;
use std::io;
use std::process::Command;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::checker::Counts;
use crate::clock;
use crate::node::{Node, Program};
use crate::scenario::{Play, Scenario};
use crate::stage::{Fault, Outcomes, Plan};
use crate::store::{Kind, Link, Setting, Store};
use crate::verdict::Verdict;

const HERDS: u32 = 3;
const NODES: usize = 16;
const LANES: usize = 64;
const CLIENTS: usize = NODES * LANES;
/// What the store may be asked for each client.
const OPERATIONS_MAX: f64 = 10.0;
const LIMIT: Duration = Duration::from_secs(120);
/// All begin before the first can be through.
const AT_ONCE: Duration = Duration::from_secs(1);

pub(crate) const ROW: Scenario =
    Scenario { id: "E24", title: "a herd of 1,024", stores: &Kind::ALL, play: Play::Own(run) };

fn run(plan: &Plan) -> io::Result<Outcomes> {
    let (mut verdict, mut faults) = (Verdict::default(), Vec::new());
    let (began, mut slowest) = (clock::now(), Duration::ZERO);
    for _ in 0..plan.cycles(HERDS) {
        let begin = clock::now();
        slowest = slowest.max(herd(plan, &mut verdict)?);
        faults.push(Fault { what: "a herd".to_owned(), node: None, begin, end: clock::now() });
    }
    let allowed = match plan.store {
        Kind::File | Kind::Redis => Duration::from_secs(5),
        Kind::Etcd | Kind::Zk => Duration::from_secs(20),
    };
    verdict.bar("until all have a worker", slowest, allowed);
    let seconds = (clock::now() - began).as_secs_f64();
    let (counts, refused) = (Counts::default(), [].into());
    Ok(Outcomes { counts, refused, faults, seconds, verdict, ..Outcomes::default() })
}

/// One herd on a new store; how long it took.
fn herd(plan: &Plan, verdict: &mut Verdict) -> io::Result<Duration> {
    let store = Store::start(plan.store, Setting::One)?;
    init(plan, &store)?;
    let nodes = nodes(plan, &store)?;
    let begin = clock::now();
    nodes.iter().try_for_each(Node::launch)?;
    let started = clock::now() - begin;
    let mut held = Vec::new();
    wait_until("all to have a worker", LIMIT, || {
        held = nodes.iter().flat_map(|node| workers_of(node).unwrap_or_default()).collect();
        held.len() >= CLIENTS || nodes.iter().any(has_ended)
    })?;
    if let Some(node) = nodes.iter().find(|node| has_ended(node)) {
        return Err(io::Error::other(format!("a node ended: see {}", node.log.display())));
    }
    let took = clock::now() - begin;
    distinct(&held, verdict);
    let mut operations = 0.0;
    for node in &nodes {
        let mut asked = None;
        // A node that is busy with its herd may take its time.
        wait_until("a node's metrics", LIMIT, || {
            asked = node.metric("frazil_store_operations_total").ok();
            asked.is_some()
        })?;
        operations += asked.unwrap_or_default();
    }
    let each = operations / CLIENTS as f64;
    verdict.hold("the store is not overrun", each <= OPERATIONS_MAX, || {
        format!("{each:.1} operations on the store for each client; {OPERATIONS_MAX} are allowed")
    });
    verdict.guard("workers held, by the store", held_in_store(plan, &store)?, CLIENTS as u64);
    verdict.guard("operations of each", u64::from(each >= 1.0), 1);
    verdict.guard("herds that began at once", u64::from(started <= AT_ONCE), 1);
    verdict.note("started within", format!("{started:?}"));
    verdict.note("operations on the store for each client", format!("{each:.2}"));
    verdict.note("until all had a worker", format!("{took:?}"));
    Ok(took)
}

fn has_ended(node: &Node) -> bool {
    !matches!(node.daemon.ended(), Ok(None))
}

/// Everybody has a worker that nobody else has.
fn distinct(held: &[u64], verdict: &mut Verdict) {
    let different = held.iter().collect::<BTreeSet<_>>().len();
    let is_right = different == CLIENTS && held.len() == CLIENTS;
    verdict.hold("a worker for each", is_right, || {
        format!("{} clients have {different} workers, and there are {CLIENTS}", held.len())
    });
}

/// The workers that a node holds, by its own word.
fn workers_of(node: &Node) -> io::Result<Vec<u64>> {
    let info = node.info()?;
    let lanes = info["lanes"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(lanes.iter().filter_map(|lane| lane["worker"].as_u64()).collect())
}

/// How many workers are held, as somebody sees it who looks into the store.
fn held_in_store(plan: &Plan, store: &Store) -> io::Result<u64> {
    let arguments = ["workers", "ls", "--json", "--store", &store.url()];
    let output = Command::new(&plan.frazil).args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter(|line| line.contains(r#""state":"held""#)).count() as u64)
}

fn nodes(plan: &Plan, store: &Store) -> io::Result<Vec<Node>> {
    let program = Program {
        frazil: plan.frazil.clone(),
        mutant: plan.mutant.clone(),
        flags: vec!["--lanes".to_owned(), LANES.to_string()],
        directory: plan.directory.clone(),
    };
    // Straight to the store: the rig's proxies are not what is measured.
    let url = store.url_of_long_leases();
    let link = || Link { url: url.clone(), proxy: None };
    (0..NODES).map(|node| Node::new(node, &format!("node-{node}"), &program, link())).collect()
}

fn init(plan: &Plan, store: &Store) -> io::Result<()> {
    let output =
        Command::new(&plan.frazil).args(["store", "init", "--store", &store.url()]).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("frazil store init: {output:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(held: &[u64]) -> bool {
        let mut verdict = Verdict::default();
        distinct(held, &mut verdict);
        verdict.passes()
    }

    #[test]
    fn a_worker_of_two_or_of_nobody_is_found() {
        let mut held: Vec<u64> = (0..CLIENTS as u64).collect();
        assert!(passes(&held));
        held[7] = 8;
        assert!(!passes(&held), "two have 8");
        held.pop();
        assert!(!passes(&held), "one has none");
    }
}
