//! A node from its start to its end, over stores that need no server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use frazil::coord::Copied;
use frazil::coord::internal::Leasing;
use frazil::coord::internal::time::{boot_time, unix_ms};
use frazil::coord::{LeaseState, Refusal, Waiting};
use frazil::coord::{Namespace, Timing};
use frazil::id::NotReady;
use frazil::{Layout, Node, NotIssued, StartError};
use frazil_election::{Elections, Settings};

fn directory() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    (directory, url)
}

#[tokio::test]
async fn two_lanes_issue_as_two_workers() {
    let (_directory, url) = directory();
    let node = Node::builder().store(&url).lanes(2).start().await.unwrap();
    let workers: BTreeSet<_> =
        node.info().lanes.iter().map(|lane| lane.status.grant.unwrap().worker).collect();
    assert_eq!(workers.len(), 2);
    let mut ids = BTreeSet::new();
    for _ in 0..100 {
        ids.extend(&node.batch(1000).await.unwrap());
        ids.insert(node.next().await.unwrap());
    }
    assert_eq!(ids.len(), 100_100);
    for id in ids {
        let worker = id.parts(&Layout::FRAZIL).unwrap().worker;
        assert!(workers.contains(&u32::try_from(worker).unwrap()));
    }
    node.shutdown().await;
    assert!(matches!(node.next().await, Err(NotIssued::NoWorker(LeaseState::Released))));
}

#[tokio::test]
async fn a_node_starts_where_elections_were_held_before_and_no_leader_notices() {
    let (_directory, url) = directory();
    let open = || {
        let (url, namespace) = (url.parse().unwrap(), Namespace::default());
        async move { frazil::coord::open(&url, &namespace, Copied::Refuse).await.unwrap() }
    };
    let elections = Elections::new(open().await);
    let candidate = elections.candidate("job", Settings::default()).unwrap();
    let leadership = candidate.campaign().await.unwrap();
    assert!(open().await.meta().await.unwrap().unwrap().value.is_blank());

    let layout = Layout::DISCORD;
    let node = Node::builder().store(&url).layout(layout).start().await.unwrap();
    node.next().await.unwrap();
    let meta = open().await.meta().await.unwrap().unwrap().value;
    assert_eq!(meta.layout, frazil::layout_mark(&layout));
    assert!(leadership.is_leader());
    leadership.resign().await.unwrap();
    assert!(candidate.campaign().await.unwrap().is_leader(), "with meta as it is now");
    node.shutdown().await;
}

#[tokio::test]
async fn a_batch_larger_than_the_open_ticks_is_whole_sorted_and_of_one_worker() {
    let (_directory, url) = directory();
    let node = Node::builder().store(&url).lanes(2).start().await.unwrap();
    let batch = node.batch(200_000).await.unwrap();
    assert_eq!(batch.len(), 200_000);
    assert!(batch.iter().is_sorted_by(|one, other| one < other));
    let workers: BTreeSet<_> =
        batch.iter().map(|id| id.parts(&Layout::FRAZIL).unwrap().worker).collect();
    assert_eq!(workers.len(), 1);
    node.shutdown().await;
}

#[tokio::test]
async fn batches_that_fill_at_the_same_time_begin_on_different_lanes() {
    let (_directory, url) = directory();
    let node = Node::builder().store(&url).lanes(4).start().await.unwrap();
    let mut partly = [const { None }; 4];
    for one in &mut partly {
        node.try_add(one, 1024).unwrap();
    }
    let lanes: BTreeSet<_> = partly.iter().flatten().map(|issued| issued.worker).collect();
    assert_eq!(lanes.len(), 4);
    node.shutdown().await;
}

#[tokio::test]
async fn ids_say_the_tenure_they_were_issued_under() {
    let (_directory, url) = directory();
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let builder = Node::builder().store(&url).workers(5..=5);
        let node = builder.start().await.unwrap();
        assert_eq!(node.check(), Ok(()));
        let issued = node.try_issue(3).unwrap();
        assert_eq!((issued.worker, issued.batch.len()), (5, 3));
        assert_eq!(Some(issued.token), node.info().lanes[0].status.grant.map(|grant| grant.token));
        tokens.push(issued.token);
        node.shutdown().await;
        assert!(matches!(node.check(), Err(NotIssued::NoWorker(_))));
    }
    assert!(tokens.is_sorted_by(|one, other| one < other), "{tokens:?}");
}

#[tokio::test]
async fn lanes_come_and_go_while_ids_are_issued() {
    let (_directory, url) = directory();
    let node = Node::builder().store(&url).start().await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let issuing = tokio::spawn({
        let (node, is_over) = (node.clone(), is_over.clone());
        async move {
            let mut ids = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                ids.extend(&node.batch(500).await.unwrap());
            }
            ids
        }
    });
    for lanes in 2..=3 {
        assert_eq!(node.add_lane(), Ok(true));
        let mut statuses = node.watch();
        let all_held = |all: &Vec<frazil::coord::LeaseStatus>| {
            all.len() == lanes && all.iter().all(|status| status.state == LeaseState::Held)
        };
        statuses.wait_for(all_held).await.unwrap();
    }
    assert!(node.drop_lane().await && node.drop_lane().await);
    assert!(!node.drop_lane().await, "the last lane stays");
    is_over.store(true, Ordering::Relaxed);
    let ids = issuing.await.unwrap();
    let distinct: BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    node.shutdown().await;
    assert_eq!(node.add_lane(), Ok(false));
}

#[tokio::test]
async fn the_next_holder_of_a_worker_starts_above_the_last() {
    let (_directory, url) = directory();
    let mut last = None;
    for _ in 0..5 {
        let builder = Node::builder().store(&url).workers(7..=7);
        let node = builder.start().await.unwrap();
        let ids = node.batch(5000).await.unwrap();
        assert!(ids.iter().next() > last, "{last:?} and then {:?}", ids.iter().next());
        last = ids.iter().last();
        node.shutdown().await;
    }
}

#[tokio::test]
async fn dropping_a_node_frees_its_worker() {
    let (_directory, url) = directory();
    let only = || Node::builder().store(&url).workers(3..=3);
    drop(only().start().await.unwrap());
    // In the background, so not quite at once.
    let node = loop {
        match only().start().await {
            Ok(node) => break node,
            Err(StartError::NoWorker(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(node.info().lanes[0].status.grant.unwrap().worker, 3);
}

#[tokio::test]
async fn a_full_pool_is_waited_for_and_then_called_by_its_name() {
    let (_directory, url) = directory();
    let only = || Node::builder().store(&url).workers(3..=3);
    let node = only().start().await.unwrap();
    let error = only().patience(Duration::from_millis(200)).start().await.unwrap_err();
    assert!(matches!(error, StartError::NoWorker(_)), "{error}");
    assert!(error.to_string().contains("1 held"), "{error}");
    // The second is told that it waits before the first lets go.
    let (told, waits) = tokio::sync::oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let second = only().start_watched(|state| {
        if let LeaseState::Seeking(Waiting::Pool(_)) = state
            && let Some(told) = told.lock().unwrap().take()
        {
            told.send(()).unwrap();
        }
    });
    let first = async {
        waits.await.unwrap();
        node.shutdown().await;
    };
    let (second, ()) = tokio::join!(second, first);
    assert_eq!(second.unwrap().info().lanes[0].status.grant.unwrap().worker, 3);
}

#[tokio::test]
async fn another_layout_or_range_is_refused() {
    let (_directory, url) = directory();
    let builder = || Node::builder().store(&url);
    builder().start().await.unwrap().shutdown().await;
    let error = builder().layout(Layout::TWITTER).start().await.unwrap_err();
    assert!(matches!(error, StartError::Refused(Refusal::OtherLayout { .. })), "{error}");
    let error = builder().workers(0..=5).start().await.unwrap_err();
    assert!(matches!(error, StartError::Refused(Refusal::OtherWorkers { .. })), "{error}");
    let other: Namespace = "other".parse().unwrap();
    builder().namespace(other).layout(Layout::TWITTER).start().await.unwrap();
}

#[tokio::test]
async fn a_fixed_worker_waits_when_it_knows_nothing_and_goes_on_when_it_does() {
    let (directory, _) = directory();
    let url = format!("static:9?state={}", directory.path().display());
    let begin = boot_time();
    let node = Node::builder().store(&url).start().await.unwrap();
    // A window of 3 s and two seconds, of which times may run ahead by two.
    let waited = boot_time() - begin;
    assert!(waited >= Duration::from_millis(2990), "{waited:?}");
    let id = node.next().await.unwrap();
    assert_eq!(id.parts(&Layout::FRAZIL).unwrap().worker, 9);
    let twin = Node::builder().store(&url).patience(Duration::from_millis(200));
    let twin = twin.start().await.unwrap_err();
    assert!(matches!(twin, StartError::NoWorker(_)), "{twin}");
    node.shutdown().await;
    let node = Node::builder().store(&url).start().await.unwrap();
    assert!(node.next().await.unwrap() > id);
}

#[tokio::test]
async fn what_does_not_go_together_is_refused_before_anything_is_touched() {
    let (directory, url) = directory();
    let builder = || Node::builder().store(&url);
    let timing = Timing::default().with_heartbeat(Duration::from_secs(20));
    assert!(matches!(builder().timing(timing).start().await, Err(StartError::Timing(_))));
    assert!(matches!(builder().lanes(0).start().await, Err(StartError::Lanes(0))));
    assert!(matches!(builder().lanes(65).start().await, Err(StartError::Lanes(65))));
    let error = builder().workers(0..=4096).start().await.unwrap_err();
    assert!(matches!(error, StartError::Workers { .. }), "{error}");
    // Newcomers of a namespace that may have been forgotten count on the end of each request.
    let (ttl, heartbeat) = (Duration::from_mins(2), Duration::from_secs(40));
    let slow = Node::builder().timing(Timing::default().with_ttl(ttl).with_heartbeat(heartbeat));
    let error = slow.store("redis://127.0.0.1:1?timeout=5001ms").start().await.unwrap_err();
    let most = Duration::from_secs(5);
    assert!(matches!(error, StartError::Timeout { most: m, .. } if m == most), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_blocking_node_issues_and_releases() {
    let (_directory, url) = directory();
    let only = || Node::builder().store(&url).workers(3..=3);
    for _ in 0..3 {
        let node = frazil::blocking::Node::start(only()).unwrap();
        let ids: BTreeSet<_> = node.batch(100).unwrap().iter().collect();
        assert_eq!(ids.len(), 100);
        assert!(node.next().unwrap() > *ids.last().unwrap());
    }
}

fn of_memory(url: &str) -> frazil::Builder {
    Node::builder().store(url)
}

#[tokio::test]
async fn two_nodes_on_memory_in_one_process_never_share_a_worker() {
    let worker = |node: &Node| node.info().lanes[0].status.grant.unwrap().worker;
    for url in ["memory:", "memory:pair"] {
        let builder = || of_memory(url).workers(7..=8);
        let (one, two) = (builder().start().await.unwrap(), builder().start().await.unwrap());
        assert_ne!(worker(&one), worker(&two), "{url}");
        let mut ids = BTreeSet::new();
        for node in [&one, &two, &one, &two] {
            ids.extend(&node.batch(1000).await.unwrap());
        }
        assert_eq!(ids.len(), 4000);
        let third = builder().patience(Duration::from_millis(200)).start().await;
        assert!(matches!(third, Err(StartError::NoWorker(Waiting::Pool(_)))), "{third:?}");
        one.shutdown().await;
        two.shutdown().await;
    }
}

#[tokio::test]
async fn names_and_namespaces_of_memory_are_stores_of_their_own() {
    let apart = "apart".parse::<Namespace>().unwrap();
    let pool_of_one = |url: &str| of_memory(url).workers(7..=7);
    let one = pool_of_one("memory:one").start().await.unwrap();
    let two = pool_of_one("memory:two").start().await.unwrap();
    let other = pool_of_one("memory:one").namespace(apart).start().await.unwrap();
    assert!(one.next().await.is_ok() && two.next().await.is_ok() && other.next().await.is_ok());
}

/// The floor of a worker outlives the node that held it, or the next one would begin in the same tick.
#[tokio::test]
async fn a_node_on_memory_starts_above_the_one_before_it() {
    let mut last = None;
    for _ in 0..20 {
        let node = of_memory("memory:slot").workers(7..=7).start().await.unwrap();
        // So many that their times run ahead of the clock.
        let (first, highest) = node.batch(20_000).await.unwrap().ends().unwrap();
        assert!(Some(first) > last, "{first:?} after {last:?}");
        last = Some(highest);
        node.shutdown().await;
    }
}

/// It starts two seconds ahead of time. Until then a lane has the tick above that and those that may run
/// ahead of it, 10 by default, and no more.
#[tokio::test]
async fn a_new_directory_gives_what_a_few_ticks_hold_and_the_rest_two_seconds_later() {
    let (_directory, url) = directory();
    let before = unix_ms();
    let node = Node::builder().store(&url).start().await.unwrap();
    let mut ids = Vec::new();
    while let Ok(issued) = node.try_up_to(4096) {
        ids.extend(&issued.batch);
    }
    let took = unix_ms() - before;
    assert!(took < 2000, "too late to tell: {took} ms");
    assert_eq!(ids.len(), 11 * 4096);
    let tick = ids[0].parts(&Layout::FRAZIL).unwrap().tick;
    let ahead = Layout::FRAZIL.unix_ms(tick) - before;
    assert!((2000..=2000 + took + 1).contains(&ahead), "{ahead} ms ahead");
    // What is more is waited for, and is there when the clock has caught up.
    ids.extend(&node.batch(20_000).await.unwrap());
    assert!(unix_ms() >= before + 2000);
    assert!(ids.is_sorted_by(|one, other| one < other));
}

#[tokio::test]
async fn a_node_with_a_name_comes_back_to_its_last_worker_and_one_without_does_not() {
    let (_directory, url) = directory();
    let mut workers = Vec::new();
    for name in [Some("web1"), Some("web2"), Some("web1"), None, Some("web2"), None] {
        let builder = Node::builder().store(&url);
        let builder = if let Some(name) = name { builder.holder(name) } else { builder };
        let node = builder.start().await.unwrap();
        node.next().await.unwrap();
        workers.push(node.info().workers()[0]);
        node.shutdown().await;
        while unix_ms() <= node.last_ms() {
            tokio::task::yield_now().await;
        }
    }
    let [web1, web2, web1_again, first, web2_again, second] = workers[..] else { unreachable!() };
    assert_eq!((web1, web2), (web1_again, web2_again));
    assert_ne!(first, second, "both have the name of this process, which nobody gave them");
}

#[tokio::test]
async fn after_its_runtime_was_blocked_a_node_looks_at_its_lease_and_goes_on() {
    let (_directory, url) = directory();
    let node = Node::builder().store(&url).start().await.unwrap();
    let before = node.next().await.unwrap();
    // A new directory starts two seconds ahead, and a lane goes one and a half further by itself.
    let until = frazil::coord::internal::time::boot_time() + Duration::from_secs(4);
    while let Some(left) = until.checked_sub(frazil::coord::internal::time::boot_time()) {
        std::thread::park_timeout(left);
    }
    let why = node.try_next().unwrap_err();
    assert!(matches!(why, NotIssued::NotReady(NotReady::Horizon { .. })), "{why}");
    assert!(node.is_held_up(&why), "the lease is good for more");
    assert!(node.info().left() > Duration::from_secs(5), "{:?}", node.info().left());
    assert!(node.next().await.unwrap() > before, "it waits for the look");
    node.shutdown().await;
    let over = node.try_next().unwrap_err();
    assert!(!node.is_held_up(&over), "{over}");
}
