//! Servers that die and come back.

use std::time::Duration;

use frazil_coord::internal::{Acquired, Choice, Extended, Leasing};
use frazil_coord::{ErrorKind, Group, Store, Watched};
use frazil_rig::{ZooKeeper, ZooKeeperEnsemble};

use crate::zookeeper::place::{Place, ask, begin, claim, server, take};

/// More than an election takes.
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_tenure_survives_the_death_of_the_leader() {
    let ensemble = ZooKeeperEnsemble::start(3).unwrap();
    let addresses: Vec<_> = ensemble.nodes().iter().map(ZooKeeper::address).collect();
    let addresses = addresses.join(",");
    let place = Place::new(&addresses).await;
    let store = place.open(&addresses, "").await;
    assert_eq!(store.guarantees().store, "ZooKeeper, 3 voting servers");
    let meta = begin(&store).await;
    let tenure = take(&store, &claim(meta, any())).await;

    let dead = ensemble.kill_leader().unwrap();
    let horizon = tenure.horizon + 1000;
    let extending = async {
        loop {
            match store.extend(&tenure, &ask(horizon)).await {
                Ok(extended) => return extended,
                // No quorum yet, or the answer died with the leader.
                Err(error) => assert!(error.kind().is_retryable(), "{error}"),
            }
        }
    };
    let extended = tokio::time::timeout(LIMIT, extending).await.expect("an election ends");
    let Extended::Held(again) = extended else { panic!("{extended:?}") };
    assert_eq!((again.token, again.horizon), (tenure.token, horizon));
    assert_ne!(ensemble.leader_index().unwrap(), dead);

    let other = place.open(&addresses, "").await;
    let this = claim(meta, Choice::This(tenure.slot.clone(), again.version));
    assert_eq!(other.acquire(&this).await.unwrap(), Acquired::Taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_comes_back_is_used_again_by_the_same_object() {
    let server = ZooKeeper::start().unwrap();
    let place = Place::new(&server.address()).await;
    let store = place.open(&server.address(), "session=60s&timeout=5s").await;
    let meta = begin(&store).await;
    let tenure = take(&store, &claim(meta, any())).await;
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    server.kill();
    assert_eq!(changes.next().await, None, "a watch that may miss something must end");
    for _ in 0..3 {
        let limit = Duration::from_secs(10);
        let read = tokio::time::timeout(limit, store.meta()).await.expect("ends in time");
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Unavailable);
        let extended = tokio::time::timeout(limit, store.extend(&tenure, &ask(0))).await;
        assert_eq!(extended.expect("ends in time").unwrap_err().kind(), ErrorKind::Unavailable);
    }
    server.restart().unwrap();
    let extended = store.extend(&tenure, &ask(tenure.horizon + 1000)).await.unwrap();
    let Extended::Held(again) = extended else { panic!("{extended:?}") };
    assert_eq!(again.token, tenure.token);
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    store.release(&again, again.floor).await.unwrap();
    assert_eq!(changes.next().await, Some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_do_not_wake_those_who_wait() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let waiting = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    let tenure = take(&store, &claim(meta, any())).await;
    let mut changes = waiting.watch(&Watched::Group(Group::Workers)).await.unwrap();
    for further in [1000, 2000, 3000] {
        let extended = store.extend(&tenure, &ask(tenure.horizon + further)).await.unwrap();
        assert!(matches!(extended, Extended::Held(_)), "{extended:?}");
    }
    // A client hears of a change before it sees it.
    waiting.list(Group::Workers).await.unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(100), changes.next()).await;
    assert!(quiet.is_err(), "a renewal was announced as a change");
    store.release(&tenure, tenure.floor).await.unwrap();
    assert_eq!(changes.next().await, Some(()));
}

fn any() -> Choice {
    Choice::Any { first: 0, last: 63, favourite: None }
}
