//! What a commit promises by itself, below the protocol.

use std::time::Duration;

use frazil_coord::internal::stores::redis::RedisStore;
use frazil_coord::internal::{Choice, Leasing};
use frazil_coord::{
    Act, Change, Commit, Committed, Entry, Found, Group, Nonce, Presence, PresenceChange, Present,
    Put, Record, Slot, Store, Token, Version, Watched,
};
use frazil_rig::Redis;

use crate::redis::lab::{LIMIT, Place, any, take};

fn record(nonce: Nonce) -> Record {
    Record {
        token: Token(5),
        nonce: Some(nonce),
        holder: "me".into(),
        floor: 0,
        horizon: 7,
        renewed: 1,
        expires: None,
        released: false,
        info: [("host".to_owned(), "a".to_owned())].into(),
    }
}

fn change(entry: &Entry, nonce: Nonce) -> Change {
    Change {
        slot: entry.slot.clone(),
        version: entry.version,
        nonce: entry.nonce(),
        present: Present::Nobody,
        record: record(nonce),
        presence_change: PresenceChange::For(Duration::from_secs(30)),
    }
}

fn commit(changes: Vec<Change>) -> Commit {
    Commit { act: Act::Acquire, meta: None, history: None, changes }
}

async fn entry(store: &RedisStore, slot: &Slot) -> Entry {
    store.read(std::slice::from_ref(slot)).await.unwrap().entry(slot).unwrap().clone()
}

async fn is_conflict(store: &RedisStore, commit: &Commit) -> bool {
    matches!(store.commit(commit).await.unwrap(), Committed::Conflict(_))
}

#[tokio::test]
async fn version_nonce_meta_history_and_presence_are_all_conditions() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let meta = place.found(&store).await;
    let slot = Slot::worker(3);
    let mint = || Nonce::mint().unwrap();
    let first = change(&entry(&store, &slot).await, mint());
    assert!(matches!(store.commit(&commit(vec![first])).await, Ok(Committed::Done { .. })));
    let seen = entry(&store, &slot).await;
    let mut again = change(&seen, mint());
    assert!(is_conflict(&store, &commit(vec![again.clone()])).await, "somebody is present");
    again.present = Present::Holder;
    let mut wrong = again.clone();
    wrong.nonce = Some(mint());
    assert!(is_conflict(&store, &commit(vec![wrong])).await, "the version alone is not enough");
    let wrong = Change { version: Version(seen.version.0 - 1), ..again.clone() };
    assert!(is_conflict(&store, &commit(vec![wrong])).await, "another version");
    let wrong = Commit { meta: Some(Version(meta.0 - 1)), ..commit(vec![again.clone()]) };
    assert!(is_conflict(&store, &wrong).await, "another meta");
    let wrong = Commit { history: Some("another".into()), ..commit(vec![again.clone()]) };
    assert!(is_conflict(&store, &wrong).await, "another history");
    assert_eq!(entry(&store, &slot).await.version, seen.version, "a conflict wrote something");
    let history = Some(store.read(&[]).await.unwrap().history.id);
    let right = Commit { meta: Some(meta), history, ..commit(vec![again]) };
    assert!(matches!(store.commit(&right).await, Ok(Committed::Done { .. })));
}

#[tokio::test]
async fn a_commit_of_several_changes_is_served_once() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    place.found(&store).await;
    let nonce = Nonce::mint().unwrap();
    let mut changes = Vec::new();
    for number in 0..3 {
        changes.push(change(&entry(&store, &Slot::worker(number)).await, nonce));
    }
    let commit = commit(changes);
    let Committed::Done { index: 0, .. } = store.commit(&commit).await.unwrap() else {
        panic!("the first change was possible")
    };
    let Committed::Conflict(look) = store.commit(&commit).await.unwrap() else {
        panic!("served twice")
    };
    assert_eq!(look.carrying(nonce).map(|(entry, _)| &entry.slot), Some(&Slot::worker(0)));
    assert_eq!(store.list(Group::Workers).await.unwrap().len(), 1);
}

#[tokio::test]
async fn nothing_is_left_of_claims_after_their_releases() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    for _ in 0..40 {
        let tenure = take(&store, &place.claim(any(0, 3), version)).await;
        store.release(&tenure, 0).await.unwrap();
    }
    assert_eq!(redis.cli(&["HLEN", "{frazil:lab}:w:nonces"]).unwrap(), "0\n");
}

#[tokio::test]
async fn an_election_is_forgotten_when_nobody_is_there_and_a_worker_never() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let slot = Slot::named(Group::Elections, "job").unwrap();
    let claim = place.claim(Choice::This(slot.clone(), Version(0)), version);
    let tenure = take(&store, &claim).await;
    assert_eq!(store.forget(&slot, tenure.version).await, Ok(Put::Conflict), "it is held");
    store.release(&tenure, 0).await.unwrap();
    assert_eq!(store.forget(&slot, tenure.version).await, Ok(Put::Conflict), "another version");
    let seen = entry(&store, &slot).await;
    assert!(matches!(store.forget(&slot, seen.version).await, Ok(Put::Done(_))));
    assert!(store.list(Group::Elections).await.unwrap().is_empty());
    let again = entry(&store, &slot).await;
    assert_eq!((again.found, again.presence), (Found::New, Presence::Free));
    let worker = take(&store, &place.claim(any(0, 0), version)).await;
    store.release(&worker, 0).await.unwrap();
    let seen = entry(&store, &worker.slot).await;
    assert_eq!(store.forget(&worker.slot, seen.version).await, Ok(Put::Conflict));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_of_one_slot_is_silent_about_others() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let slots = ["mine", "other"].map(|name| Slot::named(Group::Elections, name).unwrap());
    let mut mine = store.watch(&Watched::Slot(slots[0].clone())).await.unwrap();
    let mut all = store.watch(&Watched::Group(Group::Elections)).await.unwrap();
    let claim = |slot: &Slot| place.claim(Choice::This(slot.clone(), Version(0)), version);
    take(&store, &claim(&slots[1])).await;
    assert_eq!(tokio::time::timeout(LIMIT, all.next()).await, Ok(Some(())));
    // The other watch would have heard of it as well by now: both are told in one order.
    take(&store, &claim(&slots[0])).await;
    assert_eq!(tokio::time::timeout(LIMIT, mine.next()).await, Ok(Some(())));
    let more = tokio::time::timeout(Duration::from_millis(100), mine.next()).await;
    assert!(more.is_err(), "it was told of the other slot too");
}
