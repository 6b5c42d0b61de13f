//! A cluster that forgets everything while somebody holds a worker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::Timing;
use frazil_coord::internal::Leasing;
use frazil_coord::internal::keeper::{Keeper, Setup};
use frazil_coord::{FirstUse, LeaseState};
use frazil_rig::Etcd;

use crate::etcd::world::{PATIENCE, connect, namespace, until};
use crate::keeper::lane::{Diary, Event, TestLane};

const TIMING: Timing = Timing::DEFAULT
    .with_ttl(Duration::from_secs(2))
    .with_heartbeat(Duration::from_millis(300))
    .with_outage_budget(Duration::from_secs(6));

fn setup() -> Setup {
    Setup {
        timing: TIMING,
        layout: "layout".into(),
        workers: None,
        last_worker: 1023,
        first_use: FirstUse::AtOnce,
        holder: "keeper".into(),
        info: BTreeMap::new(),
        favourite: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_holder_raises_the_quarantine_above_all_that_it_was_promised() {
    let etcd = Etcd::start().unwrap();
    let namespace = namespace();
    let store = Arc::new(connect(&etcd.url(), &namespace).await);
    let diary = Diary::default();
    let lane = TestLane::new(diary.clone());
    let keeper = Keeper::start(store.clone(), lane.clone(), setup()).unwrap();
    let mut status = keeper.status();
    let renewed = |status: &frazil_coord::LeaseStatus| status.renewals > 0;
    let held = tokio::time::timeout(PATIENCE, status.wait_for(renewed)).await.unwrap();
    let first = held.unwrap().grant.unwrap();
    etcd.etcdctl(&["del", "--prefix", &format!("/frazil/{namespace}/")]).unwrap();

    let meta = until("meta", || async { store.meta().await.unwrap() }).await;
    // Nothing is raised any more: this is the most that the holder was ever promised.
    let promised = lane.grant().unwrap().horizon;
    let quarantine = meta.value.quarantine;
    assert!(quarantine >= promised, "{quarantine} is below {promised}");
    assert!(lane.use_one().is_some(), "it goes on for as long as it may");

    let again =
        |status: &frazil_coord::LeaseStatus| status.losses == 1 && status.state == LeaseState::Held;
    let held = tokio::time::timeout(PATIENCE, status.wait_for(again)).await.unwrap();
    let second = held.unwrap().grant.unwrap();
    assert!(second.floor >= quarantine && second.token > first.token, "{second:?}");
    until("a time of the second grant", || async { lane.use_one() }).await;
    for (grant, time) in lane.used() {
        assert!((grant.floor + 1..=grant.horizon).contains(&time));
    }
    let events = diary.lock().unwrap().clone();
    assert!(!events.contains(&Event::Close), "{events:?}");
    keeper.shutdown().await;
}
