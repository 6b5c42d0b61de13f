//! A node moves to other workers while IDs are issued, and nobody who asks for one notices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil::coord::{FirstUse, Waiting};
use frazil::coord::{Found, Group, Presence, Token};
use frazil::id::NotReady;
use frazil::{Builder, Id, Issued, Moved, Node, NotIssued, NotRotated};
use frazil_rig::Redis;

const ROTATIONS: usize = 20;
/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);
/// For what cannot be.
const BRIEF: Duration = Duration::from_millis(150);

fn on_files() -> (tempfile::TempDir, Builder) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    (directory, Node::builder().store(&url))
}

/// A server rotates from a thread whose runtime ends before the node does.
#[test]
fn leases_outlive_the_runtime_that_a_rotation_and_an_addition_ran_in() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (home, guest) = (tokio::runtime::Runtime::new().unwrap(), runtime());
    let (_directory, builder) = on_files();
    let node = home.block_on(builder.start()).unwrap();
    guest.block_on(async {
        node.rotate(None, LIMIT).await.unwrap();
        assert_eq!(node.add_lane(), Ok(true));
        let mut watch = node.watch();
        watch.wait_for(|all| all.iter().all(|lane| lane.grant.is_some())).await.unwrap();
    });
    assert_eq!(node.info().workers().len(), 2);
    drop(guest);
    home.block_on(async {
        node.shutdown().await;
        let entries = node.store().list(Group::Workers).await.unwrap();
        assert_eq!(entries.len(), 3);
        for entry in entries {
            let Found::Known(record) = entry.found else { panic!("{entry:?}") };
            assert_eq!(record.nonce, None, "a release erases it: {record:?}");
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_go_on_through_twenty_rotations_over_files() {
    let (_directory, builder) = on_files();
    goes_on(builder.start().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_go_on_through_twenty_rotations_over_redis() {
    let redis = Redis::start().unwrap();
    let builder = Node::builder().store(&redis.url()).first_use(FirstUse::AtOnce);
    goes_on(builder.start().await.unwrap()).await;
}

async fn goes_on(node: Node) {
    let asking = IssueTask::of(&node);
    for _ in 0..ROTATIONS {
        asking.more().await;
        let before = node.info().workers();
        let moved = node.rotate(None, LIMIT).await.unwrap();
        let [Moved { from, to, .. }] = moved[..] else { panic!("{moved:?}") };
        assert_eq!((vec![from], vec![to]), (before, node.info().workers()));
        assert_ne!(from, to);
        comes_to_hold(&node, &[to]).await;
    }
    asking.more().await;
    let seen = asking.end();
    assert_eq!(seen.gaps, []);
    assert!(seen.ids.is_sorted_by(|one, other| one < other), "IDs of one lane increase");
    assert_eq!(seen.tenures.len(), ROTATIONS + 1, "IDs were issued under every tenure");
    node.shutdown().await;
    comes_to_hold(&node, &[]).await;
}

/// Waits until the store has these workers as held. On files the lock of a worker that was given back
/// lives on in a child that another test is starting at that moment.
async fn comes_to_hold(node: &Node, workers: &[u32]) {
    let freed = async {
        while held(node).await != workers {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, freed).await.expect("the old worker is free in the store");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_that_lets_go_first_is_caught() {
    let (_directory, builder) = on_files();
    let node = Arc::new(Mutex::new(builder.clone().start().await.unwrap()));
    let asked = node.clone();
    let asking = IssueTask::start(move || asked.lock().unwrap().clone().try_issue(1));
    for _ in 0..ROTATIONS {
        asking.more().await;
        let old = node.lock().unwrap().clone();
        old.shutdown().await;
        let new = builder.clone().start().await.unwrap();
        *node.lock().unwrap() = new;
    }
    assert_ne!(asking.end().gaps, [], "the check would catch nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_move_together_and_one_by_one() {
    let (_directory, builder) = on_files();
    let node = builder.lanes(3).start().await.unwrap();
    let asking = IssueTask::of(&node);
    let before = node.info().workers();
    let moved = node.rotate(None, LIMIT).await.unwrap();
    let from: BTreeSet<_> = moved.iter().map(|moved| moved.from).collect();
    let to: BTreeSet<_> = moved.iter().map(|moved| moved.to).collect();
    assert_eq!(from.iter().copied().collect::<Vec<_>>(), before);
    assert_eq!(to.iter().copied().collect::<Vec<_>>(), node.info().workers());
    assert!(from.is_disjoint(&to), "{moved:?}");
    let after = node.info().workers();
    let moved = node.rotate(Some(after[1]), LIMIT).await.unwrap();
    let [Moved { from, to, .. }] = moved[..] else { panic!("{moved:?}") };
    assert_eq!(from, after[1]);
    let mut expected = vec![after[0], after[2], to];
    expected.sort_unstable();
    assert_eq!((node.info().workers(), held(&node).await), (expected.clone(), expected));
    let seen = asking.end();
    assert_eq!(seen.gaps, []);
    let distinct: BTreeSet<_> = seen.ids.iter().collect();
    assert_eq!(distinct.len(), seen.ids.len());
    assert_eq!(node.lanes(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn between_two_workers_tokens_and_ids_increase() {
    let (_directory, builder) = on_files();
    let node = builder.workers(0..=1).start().await.unwrap();
    let mut tokens: BTreeMap<u32, Token> = BTreeMap::new();
    let mut last = None;
    for _ in 0..ROTATIONS {
        let issued = node.issue(3).await.unwrap();
        let grant = node.info().lanes[0].status.grant.unwrap();
        assert_eq!((issued.worker, issued.token), (grant.worker, grant.token));
        let first = issued.batch.iter().next();
        assert!(first > last, "{last:?}, then {first:?}");
        last = issued.batch.iter().last();
        let before = tokens.insert(issued.worker, issued.token);
        assert!(before < Some(issued.token), "{before:?}, then {:?}", issued.token);
        node.rotate(Some(issued.worker), LIMIT).await.unwrap();
    }
    assert_eq!(tokens.len(), 2);
}

#[tokio::test]
async fn a_full_pool_changes_nothing() {
    let (_directory, builder) = on_files();
    let node = builder.workers(3..=4).lanes(2).start().await.unwrap();
    let grants = |node: &Node| -> Vec<_> {
        node.info().lanes.iter().map(|lane| lane.status.grant.unwrap().token).collect()
    };
    let before = grants(&node);
    for worker in [None, Some(4)] {
        let error = node.rotate(worker, BRIEF).await.unwrap_err();
        assert!(matches!(error, NotRotated::NoOther(Waiting::Pool(_))), "{error}");
        assert!(error.to_string().contains("2 held"), "{error}");
        assert_eq!((grants(&node), node.info().workers()), (before.clone(), vec![3, 4]));
        assert_eq!(held(&node).await, [3, 4]);
        node.next().await.unwrap();
    }
}

#[tokio::test]
async fn if_there_are_too_few_for_all_lanes_none_moves() {
    let (_directory, builder) = on_files();
    let node = builder.workers(1..=3).lanes(2).start().await.unwrap();
    let before = node.info().workers();
    let error = node.rotate(None, BRIEF).await.unwrap_err();
    assert!(matches!(error, NotRotated::NoOther(_)), "{error}");
    assert_eq!((node.info().workers(), held(&node).await), (before.clone(), before.clone()));
    assert_eq!(node.rotate(Some(before[0]), LIMIT).await.unwrap().len(), 1);
}

#[tokio::test]
async fn only_a_worker_that_is_held_can_be_left() {
    let (_directory, builder) = on_files();
    let node = builder.start().await.unwrap();
    let [mine] = node.info().workers()[..] else { panic!("one lane") };
    assert_eq!(node.rotate(Some(mine + 1), LIMIT).await, Err(NotRotated::NotHeld));
    assert_eq!(held(&node).await, [mine]);
    node.shutdown().await;
    assert_eq!(node.rotate(None, LIMIT).await, Err(NotRotated::Ended));
    assert_eq!(node.rotate(Some(mine), LIMIT).await, Err(NotRotated::Ended));
}

#[tokio::test]
async fn rotations_take_turns() {
    let (_directory, builder) = on_files();
    let node = builder.start().await.unwrap();
    let (one, other) = tokio::join!(node.rotate(None, LIMIT), node.rotate(None, LIMIT));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one[0].to, other[0].from);
    assert_eq!(held(&node).await, [other[0].to]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_dropped_at_any_moment_leaves_one_worker() {
    let (_directory, builder) = on_files();
    let node = builder.start().await.unwrap();
    let (mut dropped, mut moved) = (0, 0);
    let asking = IssueTask::of(&node);
    for step in 0..40 {
        let most = Duration::from_micros(500 * step);
        match tokio::time::timeout(most, node.rotate(None, LIMIT)).await {
            Err(_) => dropped += 1,
            Ok(done) => moved += done.unwrap().len(),
        }
        assert_eq!(node.lanes(), 1);
        holds_only_what_it_says(&node).await;
    }
    let seen = asking.end();
    assert_eq!(seen.gaps, []);
    assert!(seen.ids.is_sorted_by(|one, other| one < other));
    assert!(dropped > 0, "{dropped} dropped, {moved} moved");
    node.rotate(None, LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_rotation_that_nobody_polls_any_more_does_not_keep_a_node_from_ending() {
    let (_directory, builder) = on_files();
    let node = builder.workers(3..=3).start().await.unwrap();
    let mut rotation = Box::pin(node.rotate(None, LIMIT));
    let is_pending = tokio::time::timeout(BRIEF, &mut rotation).await.is_err();
    assert!(is_pending, "the pool is full");
    node.shutdown().await;
    assert_eq!(held(&node).await, Vec::<u32>::new());
    assert_eq!(rotation.await, Err(NotRotated::Ended));
}

#[tokio::test]
async fn a_lane_that_goes_during_its_rotation_takes_the_successor_with_it() {
    let (_directory, builder) = on_files();
    let node = builder.workers(3..=4).lanes(2).start().await.unwrap();
    let last = node.info().lanes[1].worker().unwrap();
    let rotation = node.rotate(Some(last), LIMIT);
    let (rotated, is_dropped) = tokio::join!(rotation, node.drop_lane());
    assert!(is_dropped);
    assert_eq!(rotated, Err(NotRotated::NotHeld));
    holds_only_what_it_says(&node).await;
    assert_eq!((node.lanes(), node.info().workers().len()), (1, 1));
}

#[test]
fn the_blocking_node_rotates() {
    let (_directory, builder) = on_files();
    let node = frazil::blocking::Node::start(builder).unwrap();
    let before = node.next().unwrap();
    let moved = node.rotate(None, LIMIT).unwrap();
    assert_eq!(node.info().workers(), [moved[0].to]);
    assert!(node.next().unwrap() > before);
}

/// The workers that somebody is present in, as the store sees it.
async fn held(node: &Node) -> Vec<u32> {
    let entries = node.store().list(Group::Workers).await.unwrap();
    let held = entries.iter().filter(|entry| matches!(entry.presence, Presence::Held { .. }));
    let mut workers: Vec<_> = held.filter_map(|entry| entry.slot.number()).collect();
    workers.sort_unstable();
    workers
}

/// What is released in the background is released in the end.
async fn holds_only_what_it_says(node: &Node) {
    let end = boot_time() + LIMIT;
    while held(node).await != node.info().workers() {
        assert!(boot_time() < end, "{:?}, not {:?}", held(node).await, node.info().workers());
        tokio::task::yield_now().await;
    }
}

/// What a thread saw that asked for one ID after the other.
#[derive(Debug, Default)]
struct Observed {
    ids: Vec<Id>,
    tenures: BTreeSet<(u32, Token)>,
    /// Answers of somebody who has no worker.
    gaps: Vec<NotIssued>,
}

/// A thread that asks for IDs until it is told to end.
struct IssueTask {
    is_over: Arc<AtomicBool>,
    issued: Arc<AtomicU64>,
    thread: JoinHandle<Observed>,
}

impl IssueTask {
    fn of(node: &Node) -> Self {
        let node = node.clone();
        Self::start(move || node.try_issue(1))
    }

    fn start(ask: impl Fn() -> Result<Issued, NotIssued> + Send + 'static) -> Self {
        let (is_over, issued) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let thread = thread::spawn({
            let (is_over, issued) = (is_over.clone(), issued.clone());
            move || {
                let mut seen = Observed::default();
                while !is_over.load(Ordering::Relaxed) {
                    seen.note(ask());
                    issued.store(seen.ids.len() as u64, Ordering::Relaxed);
                }
                seen
            }
        });
        Self { is_over, issued, thread }
    }

    /// Waits until it has got more IDs.
    async fn more(&self) {
        // The answer after the next one was surely asked for after this.
        let enough = self.issued.load(Ordering::Relaxed) + 2;
        let end = boot_time() + LIMIT;
        while self.issued.load(Ordering::Relaxed) < enough {
            assert!(boot_time() < end && !self.thread.is_finished(), "no more IDs");
            tokio::task::yield_now().await;
        }
    }

    fn end(self) -> Observed {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

impl Observed {
    fn note(&mut self, answer: Result<Issued, NotIssued>) {
        match answer {
            Ok(issued) => {
                self.ids.extend(&issued.batch);
                self.tenures.insert((issued.worker, issued.token));
            }
            Err(gap @ (NotIssued::NoWorker(_) | NotIssued::NotReady(NotReady::Closed))) => {
                self.gaps.push(gap);
            }
            // All that there is in these ticks was issued.
            Err(_) => thread::yield_now(),
        }
    }
}
