//! A store that forgets: restored snapshots, deleted and damaged keys.

use std::time::Duration;

use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released, Tenure};
use frazil_coord::{ErrorKind, Found, Group, Loss, Meta, Put, Record, Slot, Store, Version};
use frazil_rig::Etcd;

use crate::etcd::world::{any, ask, claim, connect, extend, open, take, until};

async fn lost(store: &dyn Store, tenure: &Tenure) -> Loss {
    until("an answer", || async {
        match store.extend(tenure, &ask(Duration::from_secs(30))).await {
            Ok(Extended::Lost(loss)) => Some(loss),
            Ok(Extended::Held(tenure)) => panic!("held {tenure:?}"),
            Err(error) => {
                assert!(error.kind().is_retryable(), "{error}");
                None
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_restored_from_an_older_snapshot_is_caught() {
    let etcd = Etcd::start().unwrap();
    let (store, namespace, meta) = open(&etcd.url()).await;
    let early = take(&store, &any(meta)).await;
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("snapshot");
    etcd.save_snapshot(&snapshot).unwrap();
    let mut tenure = early.clone();
    for _ in 0..5 {
        tenure = extend(&store, &tenure).await;
    }
    etcd.restore_from(&snapshot).unwrap();

    // A client that looks at the nonce only would go on: it is still there, under a horizon
    // that is lower than the one it was promised.
    let key = format!("/frazil/{namespace}/{}", tenure.slot);
    let text = etcd.etcdctl(&["get", "--print-value-only", &key]).unwrap();
    let record: Record = serde_json::from_str(&text).unwrap();
    assert_eq!((record.nonce, record.token), (Some(tenure.nonce), tenure.token));
    assert!(record.horizon < tenure.horizon);

    assert_eq!(lost(&store, &tenure).await, Loss::Regressed);
    let error = store.release(&tenure, 0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsafe, "{error}");
    assert!(error.to_string().contains("quarantine"), "{error}");
    // It can say so to all others.
    let known = store.meta().await.unwrap().unwrap();
    let raised = Meta { quarantine: tenure.horizon, ..known.value };
    assert!(matches!(store.put_meta(Some(known.version), &raised).await, Ok(Put::Done(_))));
    assert_eq!(store.acquire(&any(meta)).await, Ok(Acquired::MetaMoved));

    // Once the revisions have caught up, the record's own version still tells.
    for _ in 0..10 {
        etcd.etcdctl(&["put", "/elsewhere", "x"]).unwrap();
    }
    let newcomer = connect(&etcd.url(), &namespace).await;
    assert!(newcomer.meta().await.unwrap().is_some());
    assert_eq!(lost(&newcomer, &tenure).await, Loss::Regressed);
    assert_eq!(lost(&store, &tenure).await, Loss::Regressed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_comes_back_under_another_holder_is_not_written_over() {
    let etcd = Etcd::start().unwrap();
    let (store, namespace, meta) = open(&etcd.url()).await;
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("snapshot");
    etcd.save_snapshot(&snapshot).unwrap();
    let this = || claim(Choice::This(Slot::worker(3), Version(0)), meta);
    let old = take(&store, &this()).await;
    etcd.restore_from(&snapshot).unwrap();
    // Clients that know nothing of the history before.
    let (newcomer, other) =
        (connect(&etcd.url(), &namespace).await, connect(&etcd.url(), &namespace).await);
    let new = take(&newcomer, &this()).await;
    assert_eq!(new.version, old.version, "the revision comes back");
    let loss = lost(&other, &old).await;
    assert!(matches!(loss, Loss::Overlapped { token, .. } if token == new.token), "{loss:?}");
    assert_eq!(other.release(&old, 0).await.unwrap(), Released::NotHeld);
    extend(&newcomer, &new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_notices_that_others_were_forgotten_loses_its_tenure_too() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let tenure = extend(&store, &take(&store, &any(meta)).await).await;
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("snapshot");
    etcd.save_snapshot(&snapshot).unwrap();
    take(&store, &any(meta)).await;
    etcd.restore_from(&snapshot).unwrap();
    // Its own record is as it was.
    assert_eq!(lost(&store, &tenure).await, Loss::Regressed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_restarted_on_its_data_has_not_gone_back() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let tenure = take(&store, &any(meta)).await;
    etcd.kill();
    let error = store.extend(&tenure, &ask(Duration::from_secs(30))).await.unwrap_err();
    assert!(error.kind().is_retryable(), "{error}");
    etcd.restart().unwrap();
    let again = until("an extension", || async {
        match store.extend(&tenure, &ask(Duration::from_secs(30))).await {
            Ok(Extended::Held(tenure)) => Some(tenure),
            Ok(Extended::Lost(loss)) => panic!("lost: {loss:?}"),
            Err(_) => None,
        }
    })
    .await;
    assert_eq!(again.token, tenure.token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_is_lost_and_blocked() {
    let etcd = Etcd::start().unwrap();
    let (store, namespace, meta) = open(&etcd.url()).await;
    let slot = Slot::worker(3);
    let tenure = take(&store, &claim(Choice::This(slot.clone(), Version(0)), meta)).await;
    etcd.etcdctl(&["put", &format!("/frazil/{namespace}/{slot}"), "{damaged"]).unwrap();
    assert_eq!(lost(&store, &tenure).await, Loss::Vanished);
    etcd.etcdctl(&["del", &format!("/frazil/{namespace}/own/{slot}")]).unwrap();
    let entry = store.list(Group::Workers).await.unwrap().remove(0);
    assert_eq!(entry.found, Found::Lost);
    let only = claim(Choice::Any { first: 3, last: 3, favourite: None }, meta);
    for claim in [only, claim(Choice::This(slot, entry.version), meta)] {
        match store.acquire(&claim).await.unwrap() {
            Acquired::Full(census) => assert_eq!(census.blocked, 1),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn meta_that_is_damaged_or_newer_is_said_to_be() {
    let etcd = Etcd::start().unwrap();
    let (store, namespace, _) = open(&etcd.url()).await;
    let key = format!("/frazil/{namespace}/meta");
    for (text, kind) in [
        ("{\"format\": 99, \"shape\": \"new\"}", ErrorKind::NewerFormat),
        ("{\"format\": 1}", ErrorKind::Corrupt),
        ("nonsense", ErrorKind::Corrupt),
    ] {
        etcd.etcdctl(&["put", &key, text]).unwrap();
        let error = store.meta().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}
