//! E30: 29 jobs, on nodes that are restarted, killed, frozen and cut off, and on a store that fails.
//!
//! Three parts. The first two are `frazil jobs demo --headless`, whose nodes are parts of one process
//! and are restarted one after the other: while nothing fails, and while the store is stopped, killed
//! and out of reach. The third has four processes with jobs (`jobs_node`) that are killed, frozen for longer
//! than their leaderships last, cut off, and leave and join, while every job writes to a file through a
//! fence.
//!
//! Jobs that move while nothing fails are without a node for 300 ms at most. While the store fails
//! nobody can hand over, and after a crash nobody does: they wait for the TTL, the lock delay and a
//! second at most. On files the kernel knows who is there: a node that is frozen keeps its jobs, and
//! those of one that was killed move at once.

mod crash;
mod demo;
mod oracle;
mod report;
mod steps;
mod worker_set;

use std::io;

use crate::checker::Counts;
use crate::clock;
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Plan};
use crate::store::{Kind, Setting, Store};
use crate::verdict::Verdict;

const JOBS: u64 = 29;
/// Jobs that one node may have more than another.
const IMBALANCE_MAX: u64 = 3;

pub(crate) const ROW: Scenario =
    Scenario { id: "E30", title: "jobs that move", stores: &Kind::ALL, play: Play::Own(run) };

fn run(plan: &Plan) -> io::Result<Outcomes> {
    let (mut verdict, began) = (Verdict::default(), clock::now());
    let store = Store::start(plan.store, Setting::One)?;
    demo::quiet(plan, &store, &mut verdict)?;
    let mut faults = demo::stormy(plan, &store, &mut verdict)?;
    let crashes = crash::play(plan, &store, &mut verdict)?;
    faults.extend(crashes.faults);
    let seconds = (clock::now() - began).as_secs_f64();
    let counts = Counts::default();
    let refused = [("stale".to_owned(), crashes.refused)].into();
    Ok(Outcomes { counts, refused, faults, seconds, verdict, ..Outcomes::default() })
}
