//! A node that is given a store and a clock, and what tests can do to it with those.

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::MemoryStore;
use frazil::coord::Store;
use frazil::coord::{LeaseState, LeaseStatus};
use frazil::testing::{TIMING, TestClock, TestStore};
use frazil::{Builder, Node, NotIssued, NotReady, StartError, blocking};

const HOUR: Duration = Duration::from_hours(1);
/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

fn builder(store: &TestStore) -> Builder {
    Node::builder().store_handle(store.handle()).timing(TIMING)
}

/// Waits until the lease of the only lane is as it should be.
async fn wait_for(node: &Node, is_so: impl Fn(&LeaseStatus) -> bool) -> LeaseStatus {
    let mut statuses = node.watch();
    let seen = tokio::time::timeout(LIMIT, statuses.wait_for(|lanes| is_so(&lanes[0]))).await;
    seen.expect("it becomes so in time").unwrap()[0].clone()
}

#[tokio::test]
async fn a_store_that_is_given_open_is_used_and_named() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let node = Node::builder().store_handle(store.clone()).start().await.unwrap();
    node.next().await.unwrap();
    assert_eq!((node.info().store.as_str(), node.store_url()), ("memory:", None));
    let slots = store.list(frazil::coord::Group::Workers).await.unwrap();
    assert_eq!(slots.len(), 1);
    node.shutdown().await;
    let builder = Node::builder().store_handle(store);
    assert!(matches!(builder.store_to_open(), Err(StartError::NoUrl)));
    builder.check().unwrap();
}

#[tokio::test]
async fn a_lost_lease_is_noticed_and_replaced_by_another_worker() {
    let store = TestStore::new();
    let node = builder(&store).start().await.unwrap();
    let (first, before) = (node.info().workers()[0], node.next().await.unwrap());
    store.lose_worker(first);
    let status = wait_for(&node, |lane| lane.losses == 1 && lane.state == LeaseState::Held).await;
    assert_ne!(status.grant.unwrap().worker, first);
    assert!(node.losses().contains(&("vanished", 1)), "{:?}", node.losses());
    assert!(before < node.next().await.unwrap());
    node.shutdown().await;
}

#[tokio::test]
async fn a_silent_store_is_survived_until_its_times_are_used_up() {
    let store = TestStore::new();
    let node = builder(&store).start().await.unwrap();
    store.stop();
    wait_for(&node, |lane| lane.state == LeaseState::Unrenewed).await;
    node.next().await.unwrap();
    let refused = tokio::time::timeout(LIMIT, async {
        loop {
            if let Err(why) = node.next().await {
                return why;
            }
            tokio::task::yield_now().await;
        }
    });
    let refused = refused.await.unwrap();
    assert!(matches!(refused, NotIssued::NotReady(NotReady::Horizon { .. })), "{refused:?}");
    store.resume();
    wait_for(&node, |lane| lane.state == LeaseState::Held).await;
    node.next().await.unwrap();
    node.shutdown().await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_is_not_followed() {
    let (store, clock) = (TestStore::new(), TestClock::new());
    let node = builder(&store).clock(clock.clone()).start().await.unwrap();
    let before = node.next().await.unwrap();
    clock.step_back(HOUR);
    let refused = node.try_next().unwrap_err();
    assert!(matches!(refused, NotIssued::NotReady(NotReady::ClockRefused { .. })), "{refused:?}");
    wait_for(&node, |_| node.info().clock_steps.back == 1).await;
    clock.step_ahead(HOUR);
    assert!(before < node.next().await.unwrap());
    node.shutdown().await;
}

#[tokio::test]
async fn a_clock_that_jumps_ahead_is_not_believed_at_once() {
    let (store, clock) = (TestStore::new(), TestClock::new());
    let node = builder(&store).clock(clock.clone()).start().await.unwrap();
    let before = node.now_ms();
    clock.step_ahead(HOUR);
    node.next().await.unwrap();
    assert!(node.now_ms() < before + 60_000, "IDs go on from where time was");
    node.shutdown().await;
}

#[tokio::test]
async fn a_blocking_node_works_within_a_runtime_and_ends_there() {
    let store = TestStore::new();
    let node = blocking::Node::start(builder(&store)).unwrap();
    assert!(node.next().unwrap() < node.next().unwrap());
    assert_eq!(node.rotate(None, LIMIT).unwrap().len(), 1);
    drop(node);
    let node = blocking::Node::start(builder(&store)).unwrap();
    node.next().unwrap();
    node.shutdown();
    let refused = blocking::Node::start(Node::builder().store("nonsense")).unwrap_err();
    assert!(matches!(refused, StartError::Url(_)), "{refused}");
}
