//! E52: a node is moved to other workers again and again; what that leaves in etcd does not grow.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use frazil_rig::free_port;

use crate::clock;
use crate::scenario::{Play, Scenario, was_worth_it};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const WORKERS: u64 = 4;
/// Until every worker has a record.
const FIRST: u32 = 8;
const ROTATIONS: u32 = 40;
const MORE_MAX: usize = 5;
const TRIES: u32 = 20;

pub(crate) const ROW: Scenario = Scenario {
    id: "E52",
    title: "rotations that leave nothing",
    stores: &[Kind::Etcd],
    play: Play::Nodes { participants, act, judge },
};

fn participants(_: &Plan) -> Participants {
    // Nobody is reached there if no port is free.
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port().unwrap_or(0)));
    let more_flags = vec!["--admin".to_owned(), admin.to_string()];
    Participants { nodes: 1, workers: WORKERS, more_flags, ..Participants::default() }
}

fn act(stage: &mut Stage) -> io::Result<()> {
    let begin = clock::now();
    let admin = stage.more_flags.last().and_then(|at| at.parse::<SocketAddr>().ok());
    let admin = admin.ok_or_else(|| io::Error::other("nowhere to administer"))?;
    let mut done = 0;
    let mut rotate = |times: u32| {
        for _ in 0..times {
            done += u64::from(is_rotated(&stage.plan.frazil, admin));
        }
    };
    rotate(FIRST);
    let before = keys(stage)?;
    rotate(ROTATIONS);
    let after = keys(stage)?;
    stage.record_fault("rotated", None, begin);
    stage.verdict.note("keys", format!("{before} before {ROTATIONS} rotations, {after} after"));
    stage.verdict.hold("nothing is left behind", !grows(before, after), || {
        format!("{before} keys before {ROTATIONS} rotations, {after} after")
    });
    stage.verdict.guard("rotations", done, (FIRST + ROTATIONS).into());
    Ok(())
}

/// Rotates, once the workers that were left may be used again.
fn is_rotated(frazil: &Path, admin: SocketAddr) -> bool {
    let server = format!("http://{admin}");
    (0..TRIES).any(|_| {
        let output = Command::new(frazil).args(["workers", "rotate", "--server", &server]).output();
        let is_done = output.is_ok_and(|output| output.status.success());
        if !is_done {
            clock::rest(Duration::from_millis(100));
        }
        is_done
    })
}

fn keys(stage: &Stage) -> io::Result<usize> {
    let listed = stage.store.etcd()?.etcdctl(&["get", "--prefix", "", "--keys-only"])?;
    Ok(count(&listed))
}

/// Keys come with an empty line after each.
fn count(listed: &str) -> usize {
    listed.lines().filter(|line| !line.is_empty()).count()
}

/// Whether each rotation leaves something: all workers had records before.
fn grows(before: usize, after: usize) -> bool {
    after > before + MORE_MAX
}

fn judge(plan: &Plan, outcomes: &mut Outcomes) {
    was_worth_it(plan, outcomes);
    outcomes.verdict.guard("tenures", outcomes.counts.tenures, u64::from(ROTATIONS));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_left_are_counted() {
        assert_eq!(count("/frazil/default/meta\n\n/frazil/default/w/1\n\n"), 2);
        assert!(!grows(22, 22) && !grows(22, 27) && !grows(22, 9));
        assert!(grows(22, 28) && grows(22, 62));
    }
}
