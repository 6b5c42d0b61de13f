//! Real forks of an embedded node: the child never issues with the parent's workers, and never
//! touches their leases.

mod forking;

use std::cell::Cell;
use std::io::{Read, Write, pipe};
use std::sync::Arc;
use std::time::Duration;

use frazil::coord::MemoryStore;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::{LeaseState, LeaseStatus};
use frazil::coord::{Timing, UnixMs};
use frazil::id::{Generator, Options, SystemClock};
use frazil::{Builder, Layout, NotIssued, NotRotated, NotScoped, ScopeAuthority, Strict};
use frazil_election::{Elections, Settings};

use self::forking::{alone, beside, in_child, orphan, repeated};

const COUNT: usize = 20_000;
/// What a child tells of a refusal because it is one, and of every other answer.
const FORKED: u64 = 1;
const OTHERWISE: u64 = 2;
/// Nothing here takes long.
const SOON: Duration = Duration::from_secs(30);

fn at(directory: &tempfile::TempDir) -> Builder {
    frazil::Node::builder().store(&format!("file:{}", directory.path().display()))
}

/// Renewed many times a second.
fn lively(directory: &tempfile::TempDir) -> Builder {
    let ttl = Duration::from_secs(1);
    at(directory)
        .timing(Timing::DEFAULT.with_ttl(ttl).with_heartbeat(ttl / 20).with_outage_budget(ttl * 3))
}

fn word<T>(answer: Result<T, NotIssued>) -> u64 {
    if matches!(answer, Err(NotIssued::Forked)) { FORKED } else { OTHERWISE }
}

fn scoped<T>(answer: Result<T, NotScoped>) -> u64 {
    match answer {
        Err(NotScoped::NotIssued(why)) => word::<()>(Err(why)),
        _ => OTHERWISE,
    }
}

#[derive(Debug)]
struct Always;

impl ScopeAuthority for Always {
    fn is_valid(&self) -> bool {
        true
    }

    fn floor(&self) -> UnixMs {
        0
    }

    fn horizon(&self) -> UnixMs {
        unix_ms() + 60_000
    }
}

#[test]
fn a_child_is_refused_what_its_parent_goes_on_to_issue() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let node = frazil::blocking::Node::start(at(&directory)).unwrap();
    node.next().unwrap();
    let take = || -> Vec<u64> {
        let number = |_| match node.next() {
            Ok(id) => id.to_u64(),
            Err(why) => word::<()>(Err(why)),
        };
        (0..COUNT).map(number).collect()
    };
    let (of_child, of_parent) = beside(take, take);
    assert_eq!(of_child.len(), COUNT, "the child came to its end");
    let issued = of_child.iter().filter(|number| **number > OTHERWISE);
    let all: Vec<u64> = issued.chain(&of_parent).copied().collect();
    assert_eq!(repeated(&all), 0, "of {}", all.len());
    assert_eq!(all.len(), COUNT, "only the parent has issued");
    assert!(of_child.iter().all(|answer| *answer == FORKED), "each refusal says why");
}

#[test]
fn a_leader_does_not_lead_in_a_child() {
    let _alone = alone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let elections = Elections::new(Arc::new(MemoryStore::new()));
    let candidate = elections.candidate("job", Settings::default()).unwrap();
    let leadership =
        runtime.block_on(async { tokio::time::timeout(SOON, candidate.campaign()).await });
    let leadership = leadership.expect("nobody else campaigns").unwrap();
    let proof = leadership.proof();
    let ask =
        || vec![u64::from(proof.is_leader()), u64::from(proof.ensure(Duration::ZERO).is_ok())];
    assert_eq!(in_child(ask), [0, 0]);
    assert_eq!(ask(), [1, 1], "the parent goes on");
}

/// The control: what knows nothing of forks repeats its IDs, and the checker sees it.
#[test]
fn a_bare_generator_repeats_its_ids_in_a_child() {
    let _alone = alone();
    let layout = Layout::FRAZIL;
    let generator =
        Generator::new(&layout, 1, SystemClock::new(&layout), Options::default()).unwrap();
    let take = || -> Vec<u64> { (0..COUNT).map(|_| generator.next().unwrap().to_u64()).collect() };
    let (mut all, of_parent) = beside(take, take);
    all.extend(of_parent);
    assert!(repeated(&all) > 0);
}

#[test]
fn every_way_to_an_id_is_closed_to_a_child() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let node = runtime.block_on(at(&directory).lanes(2).start()).unwrap();
    let strict = Strict::new(node.clone(), Always);
    let mut begun = Some(node.try_up_to(1).unwrap());
    let mut begun_strict = Some(strict.try_up_to(1).unwrap());
    let ask = || -> Vec<u64> {
        vec![
            word(node.try_next()),
            word(node.try_batch(3)),
            word(node.try_issue(3)),
            word(node.try_up_to(3)),
            word(node.try_fill(&mut None, 3)),
            word(node.try_fill(&mut begun, 3)),
            word(node.check()),
            scoped(strict.try_up_to(3)),
            scoped(strict.try_fill(&mut None, 3)),
            scoped(strict.try_fill(&mut begun_strict, 3)),
        ]
    };
    assert_eq!(in_child(ask), [FORKED; 10]);
    assert!(node.try_next().is_ok() && strict.try_up_to(3).is_ok(), "the parent goes on");
}

#[test]
fn a_blocking_child_is_refused_batches_and_rotations() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let node = frazil::blocking::Node::start(at(&directory)).unwrap();
    let told = in_child(|| {
        let rotated = node.rotate(None, Duration::from_secs(20));
        let rotated = if rotated == Err(NotRotated::Forked) { FORKED } else { OTHERWISE };
        vec![word(node.batch(3)), rotated]
    });
    assert_eq!(told, [FORKED; 2]);
}

/// The tenure of a blocking node's lane, once it was renewed again: a release would be noticed then.
fn renewed(info: impl Fn() -> frazil::NodeInfo) -> (u32, u64, u64) {
    let status = |info: &frazil::NodeInfo| info.lanes[0].status.clone();
    let before = status(&info()).renewals;
    loop {
        let status = status(&info());
        if status.renewals > before + 1 || status.losses > 0 {
            let grant = status.grant.unwrap();
            return (grant.worker, grant.token.0, status.losses);
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_child_that_drops_its_copy_leaves_the_lease_alone() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let mut node = Some(frazil::blocking::Node::start(lively(&directory)).unwrap());
    let before = renewed(|| node.as_ref().unwrap().info());
    let told = in_child(|| {
        drop(node.take());
        vec![FORKED]
    });
    assert_eq!(told, [FORKED], "dropping it came to an end");
    let node = node.unwrap();
    assert_eq!(renewed(|| node.info()), before);
    let other = frazil::blocking::Node::start(lively(&directory)).unwrap();
    assert_ne!(renewed(|| other.info()).0, before.0, "the lock is the parent's still");
}

/// A runtime of one thread goes on in a child, and with it the tasks that renew and release.
#[test]
fn a_child_that_goes_on_with_the_runtime_leaves_the_lease_alone() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut node = Some(runtime.block_on(lively(&directory).start()).unwrap());
    let grant = node.as_ref().unwrap().info().lanes[0].status.grant.unwrap();
    let told = in_child(|| {
        let copy = node.take().unwrap();
        let mut watch = copy.watch();
        let answers = runtime.block_on(async {
            copy.shutdown().await;
            (word(copy.next().await), u64::from(copy.add_lane() == Ok(false)))
        });
        drop(copy);
        let released = watch.wait_for(|all| all[0].state == LeaseState::Released);
        // Several heartbeats: whatever the tasks were to do, they do.
        let waiting = async { tokio::time::timeout(Duration::from_millis(300), released).await };
        vec![answers.0, answers.1, u64::from(runtime.block_on(waiting).is_err())]
    });
    assert_eq!(told, [FORKED, 1, 1]);
    let node = node.unwrap();
    let mut watch = node.watch();
    let status = runtime.block_on(async {
        watch.mark_unchanged();
        let renewed = |all: &Vec<LeaseStatus>| all[0].losses > 0 || all[0].renewals > 3;
        let all = watch.wait_for(renewed).await.unwrap();
        all[0].clone()
    });
    assert_eq!((status.losses, status.grant.unwrap().token), (0, grant.token));
    assert!(runtime.block_on(node.next()).is_ok());
}

#[test]
fn a_child_can_start_a_node_of_its_own() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let node = frazil::blocking::Node::start(at(&directory)).unwrap();
    let take = |node: &frazil::blocking::Node| -> Vec<u64> {
        (0..COUNT).map(|_| node.next().unwrap().to_u64()).collect()
    };
    let own = || take(&frazil::blocking::Node::start(at(&directory)).unwrap());
    let (mut all, of_parent) = beside(own, || take(&node));
    all.extend(of_parent);
    assert_eq!((all.len(), repeated(&all)), (2 * COUNT, 0));
}

/// On files the kernel's lock belongs to both. That costs a worker while the child lives, and no
/// uniqueness.
#[test]
fn a_child_that_outlives_its_parent_keeps_the_worker_until_it_ends() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let start = |patience| {
        let only = lively(&directory).workers(7..=7).patience(patience);
        frazil::blocking::Node::start(only)
    };
    let long = Duration::from_secs(20);
    // What the parent says ends with it, and what the child listens to with this process's copy.
    let ((mut heard, say), (mut listen, hold)) = (pipe().unwrap(), pipe().unwrap());
    let (say, hold) = (Cell::new(Some(say)), Cell::new(Some(hold)));
    let parent = || {
        let node = start(long).unwrap();
        let (mut say, last) = (say.take().unwrap(), node.next().unwrap().to_u64());
        say.write_all(&last.to_be_bytes()).unwrap();
        orphan(|| {
            drop((say, hold.take()));
            listen.read_to_end(&mut Vec::new()).unwrap();
        })
    };
    let (_, (last, refused, first)) = beside(parent, || {
        drop(say.take());
        let mut last = [0; 8];
        heard.read_exact(&mut last).unwrap();
        assert_eq!(heard.read(&mut [0]).unwrap(), 0, "the parent has died");
        let refused = start(Duration::from_millis(500)).unwrap_err().to_string();
        drop(hold.take());
        (u64::from_be_bytes(last), refused, start(long).unwrap().next().unwrap().to_u64())
    });
    assert!(refused.contains("1 held"), "{refused}");
    assert!(first > last);
}
