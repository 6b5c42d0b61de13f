//! Members that die, hang and come back.

use std::time::Duration;

use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_coord::internal::{Choice, Extended, Leasing, Released};
use frazil_coord::{ErrorKind, Store};
use frazil_rig::EtcdCluster;

use crate::etcd::world::{any, ask, claim, connect, extend, held, open, take, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_tenure_survives_the_death_of_the_leader() {
    let cluster = EtcdCluster::start(3).unwrap();
    let (store, namespace, meta) = open(&format!("{}?timeout=2s", cluster.url())).await;
    let tenure = take(&store, &any(meta)).await;
    let dead = cluster.kill_leader().unwrap();
    assert!(!cluster.node(dead).runs());
    let again = until("an extension", || async {
        match store.extend(&tenure, &ask(Duration::from_secs(30))).await {
            Ok(Extended::Held(tenure)) => Some(tenure),
            Ok(Extended::Lost(loss)) => panic!("lost: {loss:?}"),
            Err(error) => {
                assert!(error.kind().is_retryable(), "{error}");
                None
            }
        }
    })
    .await;
    assert_eq!((again.token, again.floor), (tenure.token, tenure.floor));
    assert!(again.horizon > tenure.horizon);
    assert_ne!(cluster.leader_index().unwrap(), dead);

    // Somebody who comes now, with the dead member in the URL, starts above what was used.
    let last = unix_ms() + 500;
    assert_eq!(store.release(&again, last).await.unwrap(), Released::Done);
    let other = connect(&cluster.url(), &namespace).await;
    let entry = other.list(tenure.slot.group()).await.unwrap().remove(0);
    let next = take(&other, &claim(Choice::This(entry.slot, entry.version), meta)).await;
    assert!(next.token > again.token);
    assert_eq!(next.floor, last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_hangs_is_left_for_another_within_one_call() {
    let cluster = EtcdCluster::start(3).unwrap();
    let (store, _, meta) = open(&format!("{}?timeout=3s", cluster.url())).await;
    let mut tenure = take(&store, &any(meta)).await;
    let leader = cluster.leader_index().unwrap();
    // Whichever follower it is connected to hangs once.
    for index in (0..3).filter(|index| *index != leader) {
        cluster.node(index).pause().unwrap();
        tenure = extend(&store, &tenure).await;
        cluster.node(index).resume().unwrap();
        cluster.node(index).wait_ready().unwrap();
    }
    assert_eq!(held(&store).await, [tenure.slot]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_there_is_an_error_and_with_it_again_the_tenure_goes_on() {
    let cluster = EtcdCluster::start(3).unwrap();
    let (store, _, meta) = open(&format!("{}?timeout=2s", cluster.url())).await;
    let tenure = take(&store, &any(meta)).await;
    cluster.node(0).kill();
    cluster.node(1).kill();
    for _ in 0..3 {
        let start = boot_time();
        let error = store.extend(&tenure, &ask(Duration::from_secs(30))).await.unwrap_err();
        assert!(error.kind().is_retryable(), "{error}");
        assert!(boot_time() - start < Duration::from_secs(4), "took {:?}", boot_time() - start);
        let error = store.meta().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    cluster.restart_all().unwrap();
    let again = until("an extension", || async {
        match store.extend(&tenure, &ask(Duration::from_secs(30))).await {
            Ok(Extended::Held(tenure)) => Some(tenure),
            Ok(Extended::Lost(loss)) => panic!("lost: {loss:?}"),
            Err(error) => {
                assert!(error.kind().is_retryable(), "{error}");
                None
            }
        }
    })
    .await;
    assert_eq!(again.token, tenure.token);
}
