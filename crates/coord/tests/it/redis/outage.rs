//! A server that goes away and comes back, under one store object.

use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released};
use frazil_coord::{ErrorKind, Group, Presence, Slot, Store, Version};
use frazil_rig::{Proxy, Redis};

use crate::redis::deaf::Deaf;
use crate::redis::lab::{LIMIT, Place, any, eventually, take};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_back_is_used_again() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let place = Place::new(format!("redis://{}?timeout=500ms", proxy.address()));
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 3), version)).await;
    proxy.cut();
    for _ in 0..3 {
        let error = store.extend(&tenure, &place.ask()).await.unwrap_err();
        assert!(error.kind().is_retryable(), "{error}");
        let error = store.list(Group::Workers).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    proxy.heal();
    let extended = store.extend(&tenure, &place.ask()).await.unwrap();
    assert!(matches!(extended, Extended::Held(_)), "{extended:?}");
    // An idle connection that was closed in between costs nothing.
    proxy.disconnect();
    let extended = store.extend(&tenure, &place.ask()).await.unwrap();
    assert!(matches!(extended, Extended::Held(_)), "{extended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_server_ends_each_act_within_the_time_out() {
    let redis = Redis::start().unwrap();
    let place = Place::new(format!("{}?timeout=300ms", redis.url()));
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 3), version)).await;
    redis.pause().unwrap();
    let before = boot_time();
    let error = store.extend(&tenure, &place.ask()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    assert!(boot_time() - before < Duration::from_secs(3));
    let error = store.meta().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    redis.resume().unwrap();
    eventually("an answer", async || store.meta().await.ok()).await;
    let extended = store.extend(&tenure, &place.ask()).await.unwrap();
    assert!(matches!(extended, Extended::Held(_)), "{extended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_without_an_answer_is_unsure_and_its_repetition_gets_the_same_slot() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let place = Place::new(format!("redis://{}?timeout=1s", proxy.address()));
    let (store, witness) = (place.open().await, Place::new(redis.url()).open().await);
    let version = place.found(&store).await;
    // The server knows the script from now on, so that one request is enough.
    let scope = Slot::named(Group::Scopes, "first").unwrap();
    take(&store, &place.claim(Choice::This(scope, Version(0)), version)).await;
    let slot = Slot::named(Group::Elections, "job").unwrap();
    let this = place.claim(Choice::This(slot.clone(), Version(0)), version);
    let pool = place.claim(any(0, 63), version);
    // Their groups have begun.
    store.read(std::slice::from_ref(&slot)).await.unwrap();
    store.read(&[Slot::worker(0)]).await.unwrap();
    let deaf = Deaf { store: &store, proxy: &proxy };
    let acquired = deaf.acquire(&this).await.unwrap();
    assert_eq!(acquired, Acquired::Unsure(slot, Version(0)));
    proxy.heal();
    store.meta().await.unwrap();
    let error = deaf.acquire(&pool).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    let held = async |group| {
        let listed = witness.list(group).await.unwrap();
        listed.iter().filter(|entry| entry.presence != Presence::Free).count()
    };
    assert_eq!((held(Group::Elections).await, held(Group::Workers).await), (1, 1));
    proxy.heal();
    for claim in [&this, &pool] {
        let tenure = take(&store, claim).await;
        assert!(matches!(store.extend(&tenure, &place.ask()).await, Ok(Extended::Held(_))));
    }
    assert_eq!((held(Group::Elections).await, held(Group::Workers).await), (1, 1));
    let tenure = take(&store, &pool).await;
    assert_eq!(store.release(&tenure, 0).await, Ok(Released::Done));
    let other = take(&store, &place.claim(any(0, 63), version)).await;
    assert_ne!(other.nonce, tenure.nonce);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_ends_with_its_connection_and_with_its_store() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let place = Place::new(format!("redis://{}?timeout=300ms", proxy.address()));
    let store = place.open().await;
    let mut changes = store.watch(&frazil_coord::Watched::Group(Group::Workers)).await.unwrap();
    proxy.cut();
    assert_eq!(tokio::time::timeout(LIMIT, changes.next()).await, Ok(None));
    proxy.heal();
    let mut changes = store.watch(&frazil_coord::Watched::Group(Group::Workers)).await.unwrap();
    proxy.black_hole();
    assert_eq!(tokio::time::timeout(LIMIT, changes.next()).await, Ok(None));
    proxy.heal();
    proxy.disconnect();
    let mut changes = store.watch(&frazil_coord::Watched::Group(Group::Workers)).await.unwrap();
    drop(store);
    assert_eq!(tokio::time::timeout(LIMIT, changes.next()).await, Ok(None));
    eventually("the connections to close", async || (proxy.open_connections() == 0).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_nobody_listens_to_ends() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let subscribers = || redis.cli(&["PUBSUB", "NUMSUB", "{frazil:lab}:ev"]).unwrap();
    let changes = store.watch(&frazil_coord::Watched::Group(Group::Workers)).await.unwrap();
    assert!(subscribers().ends_with("1\n"), "{}", subscribers());
    drop(changes);
    eventually("the subscription to end", async || subscribers().ends_with("0\n").then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_memory_is_unavailable_and_writes_nothing() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 3), version)).await;
    let before = redis.cli(&["HGET", "{frazil:lab}:w", tenure.slot.name()]).unwrap();
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    for _ in 0..2 {
        let error = store.extend(&tenure, &place.ask()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        let error = store.acquire(&place.claim(any(0, 3), version)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    let after = redis.cli(&["HGET", "{frazil:lab}:w", tenure.slot.name()]).unwrap();
    assert_eq!(before, after);
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    assert!(matches!(store.extend(&tenure, &place.ask()).await, Ok(Extended::Held(_))));
}
