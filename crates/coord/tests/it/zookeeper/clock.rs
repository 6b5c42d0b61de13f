//! The servers' clock, as far as they tell it.

use frazil_coord::internal::stores::zookeeper::ZooKeeperStore;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Choice, Leasing};
use frazil_coord::{Group, Slot, Store, StoreUrl, Version};

use crate::zookeeper::place::{Place, begin, claim, server};

/// The server runs on the clock of the test. An answer can be as late as a busy machine is slow.
const SLOW_MS: u64 = 5000;

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_is_known_before_anything_else_is_written() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let told = store.time().await.unwrap().unwrap();
    assert!(told.abs_diff(unix_ms()) < SLOW_MS, "{told}");
    assert_eq!(store.meta().await.unwrap(), None);
    assert!(store.time().await.unwrap().unwrap() >= told, "it stands still");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_far_off_writes_nothing() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    let choices = [
        Choice::Any { first: 0, last: 63, favourite: None },
        Choice::This(Slot::worker(1), Version(0)),
    ];
    for choice in choices {
        let mut ahead = claim(meta, choice);
        ahead.now += 365 * 24 * 3_600_000;
        let acquired = store.acquire(&ahead).await.unwrap();
        assert!(matches!(acquired, Acquired::ClockOff { .. }), "{acquired:?}");
    }
    assert!(store.list(Group::Workers).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_looks_writes_nothing_and_knows_no_clock() {
    let place = Place::new(&server().address()).await;
    begin(&place.open(&server().address(), "").await).await;
    let base = place.path("").trim_end_matches('/').to_owned();
    let before = place.control.exists(&base).await.unwrap().unwrap();
    let url: StoreUrl = format!("zk://{}/tests", server().address()).parse().unwrap();
    let store = ZooKeeperStore::look(&url, &place.namespace).await.unwrap();
    let look = store.read(&[Slot::worker(1)]).await.unwrap();
    assert!(look.meta.is_some());
    assert_eq!(look.clock, None);
    let after = place.control.exists(&base).await.unwrap().unwrap();
    assert_eq!(before.version, after.version);
}
