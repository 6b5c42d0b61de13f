//! Waiting for replicas.

use frazil_coord::internal::{Acquired, Choice, Extended, Leasing};
use frazil_coord::{ErrorKind, Slot, Store, Version};
use frazil_rig::Redis;

use crate::redis::lab::{Place, any, eventually, replica_of, take};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_replica_does_not_confirm_is_not_acknowledged() {
    let master = Redis::start().unwrap();
    let replica = replica_of(&master);
    let place = Place::new(format!("{}?durability=wait:1&timeout=1500ms", master.url()));
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 3), version)).await;
    let copy = replica.cli(&["HGET", "{frazil:lab}:w", tenure.slot.name()]).unwrap();
    assert!(copy.contains(&tenure.nonce.to_string()), "acknowledged, and yet not there: {copy}");
    replica.pause().unwrap();
    let this = place.claim(Choice::This(Slot::worker(9), Version(0)), version);
    let deaf = Place::new(master.url()).open().await;
    let unconfirmed = take(&deaf, &this).await;
    let mut ask = place.ask();
    ask.horizon -= 1;
    let error = store.extend(&tenure, &ask).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    let error = store.put_meta(Some(version), &place.meta()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    let version = store.meta().await.unwrap().unwrap().version;
    // A repetition has nothing new to write, and yet must not count as confirmed.
    let this = frazil_coord::internal::Claim { meta: version, ..this };
    let error = store.acquire(&this).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    // Nor is anything written that would have to be confirmed.
    let error = store.acquire(&place.claim(any(10, 10), version)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    assert_eq!(master.cli(&["HLEN", "{frazil:lab}:w"]).unwrap(), "2\n");
    replica.resume().unwrap();
    let tenure = eventually("the replica to confirm", async || match store.acquire(&this).await {
        Ok(Acquired::Held(tenure)) => Some(tenure),
        _ => None,
    })
    .await;
    assert_eq!(tenure.token, unconfirmed.token);
    assert!(matches!(store.extend(&tenure, &place.ask()).await, Ok(Extended::Held(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_replicas_than_there_are_never_confirm() {
    let master = Redis::start().unwrap();
    let _replica = replica_of(&master);
    let place = Place::new(format!("{}?durability=wait:2&timeout=2s", master.url()));
    let store = place.open().await;
    let error = store.put_meta(None, &place.meta()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    assert!(error.to_string().contains("1 of 2 replicas"), "{error}");
}

#[tokio::test]
async fn waiting_for_replicas_without_any_is_warned_about() {
    let redis = Redis::start().unwrap();
    let place = Place::new(format!("{}?durability=wait:1&timeout=300ms", redis.url()));
    let store = place.open().await;
    let warnings = store.guarantees().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("none is connected")), "{warnings:?}");
    let error = store.put_meta(None, &place.meta()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
}
