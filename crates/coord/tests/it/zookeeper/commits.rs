//! One commit: what it is made under, what it leaves, and what is told of it.

use std::time::Duration;

use frazil_coord::internal::stores::zookeeper::ZooKeeperStore;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Choice, Leasing, Released};
use frazil_coord::{
    Act, Change, Commit, Committed, Entry, Found, Group, Nonce, Presence, PresenceChange, Present,
    Put, Record, Slot, Store, Token, Version, Wanted, Watched,
};
use frazil_zookeeper::CreateMode;

use crate::zookeeper::place::{ANYONE, Place, begin, claim, meta, server, take};

fn election(name: &str) -> Slot {
    Slot::named(Group::Elections, name).unwrap()
}

fn record(nonce: Nonce) -> Record {
    let now = unix_ms();
    Record {
        token: Token(now),
        nonce: Some(nonce),
        holder: "a test".into(),
        floor: 0,
        horizon: now,
        renewed: now,
        expires: None,
        released: false,
        info: std::collections::BTreeMap::new(),
    }
}

/// Takes a slot as an entry shows it.
fn taking(entry: &Entry, meta: Version, nonce: Nonce) -> Commit {
    let change = Change {
        slot: entry.slot.clone(),
        version: entry.version,
        nonce: entry.nonce(),
        present: Present::Nobody,
        record: record(nonce),
        presence_change: PresenceChange::For(Duration::from_secs(1)),
    };
    Commit { act: Act::Acquire, meta: Some(meta), history: None, changes: vec![change] }
}

async fn entry(store: &ZooKeeperStore, slot: &Slot) -> Entry {
    store.read(std::slice::from_ref(slot)).await.unwrap().entries.remove(0)
}

async fn conflict(store: &ZooKeeperStore, commit: &Commit) -> Entry {
    match store.commit(commit).await.unwrap() {
        Committed::Conflict(mut look) => look.entries.remove(0),
        done @ Committed::Done { .. } => panic!("{done:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_names_another_nonce_is_a_conflict() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    let tenure = take(&store, &claim(meta, Choice::This(election("a"), Version(0)))).await;
    place.control.delete(&place.own(&tenure.slot), None).await.unwrap();
    // With and without a look just before it.
    for looks in [true, false] {
        let seen = entry(&store, &tenure.slot).await;
        assert_eq!((seen.version, seen.presence), (tenure.version, Presence::Free));
        for nonce in [None, Some(Nonce::mint().unwrap())] {
            if looks {
                entry(&store, &tenure.slot).await;
            }
            let mut other = taking(&seen, meta, Nonce::mint().unwrap());
            other.changes[0].nonce = nonce;
            assert_eq!(conflict(&store, &other).await, seen);
        }
    }
    let right = taking(&entry(&store, &tenure.slot).await, meta, Nonce::mint().unwrap());
    assert!(matches!(store.commit(&right).await.unwrap(), Committed::Done { index: 0, .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_served_once_and_its_repetition_shows_the_slot() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    let nonce = Nonce::mint().unwrap();
    let commit = taking(&entry(&store, &Slot::worker(3)).await, meta, nonce);
    let Committed::Done { version, expires, look, .. } = store.commit(&commit).await.unwrap()
    else {
        panic!()
    };
    assert_eq!(expires, look.clock.map(|clock| clock + 30_000), "for a session");
    assert_eq!(look.meta.unwrap().version, meta);
    for held in [true, false] {
        let served = conflict(&store, &commit).await;
        assert_eq!((served.version, served.nonce()), (version, Some(nonce)));
        assert_eq!(served.presence != Presence::Free, held);
        if held {
            place.control.delete(&place.own(&Slot::worker(3)), None).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_looked_at_once_the_second_is_told_what_is_there() {
    let place = Place::new(&server().address()).await;
    let address = server().address();
    let (first, second) = (place.open(&address, "").await, place.open(&address, "").await);
    let meta = begin(&first).await;
    let slot = Slot::worker(1);
    let (mine, yours) = (entry(&first, &slot).await, entry(&second, &slot).await);
    let nonce = Nonce::mint().unwrap();
    let done = first.commit(&taking(&mine, meta, nonce)).await.unwrap();
    assert!(matches!(done, Committed::Done { .. }), "{done:?}");
    // It goes by its look, and only the multi finds out.
    let there = conflict(&second, &taking(&yours, meta, Nonce::mint().unwrap())).await;
    assert_eq!(there.nonce(), Some(nonce));
    assert_eq!(there.presence, Presence::Held { expires_in: None });
}

#[tokio::test(flavor = "multi_thread")]
async fn meta_that_was_created_anew_has_another_version() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let before = begin(&store).await;
    let seen = entry(&store, &Slot::worker(1)).await;
    let mut anew = meta();
    anew.quarantine = unix_ms() + 60_000;
    // The same transaction, as it can be once all servers were wiped, is not to be had; the same
    // count of writes is.
    let (path, data) = (place.path("meta"), serde_json::to_vec(&anew).unwrap());
    place.control.delete(&path, None).await.unwrap();
    place.control.create(&path, b"", CreateMode::Persistent, &ANYONE).await.unwrap();
    let stat = place.control.set_data(&path, &data, None).await.unwrap();
    let now = store.meta().await.unwrap().unwrap();
    assert_ne!(now.version, before);
    assert_ne!(now.version, Version(u64::try_from(stat.mzxid).unwrap()));
    let commit = taking(&seen, before, Nonce::mint().unwrap());
    assert_eq!(conflict(&store, &commit).await, seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_nobody_is_present_in_can_be_forgotten() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    let slot = election("nightly");
    let tenure = take(&store, &claim(meta, Choice::This(slot.clone(), Version(0)))).await;
    let held = store.forget(&slot, tenure.version).await.unwrap();
    assert_eq!(held, Put::Conflict, "somebody is present");
    assert_eq!(store.release(&tenure, tenure.floor).await.unwrap(), Released::Done);
    assert_eq!(store.forget(&slot, tenure.version).await.unwrap(), Put::Conflict, "outdated");
    let free = entry(&store, &slot).await;
    assert!(matches!(store.forget(&slot, free.version).await.unwrap(), Put::Done(_)));
    for path in ["e/nightly", "born/e-nightly", "own/e-nightly"] {
        assert_eq!(place.control.exists(&place.path(path)).await.unwrap(), None, "{path}");
    }
    assert!(store.list(Group::Elections).await.unwrap().is_empty());
    let again = take(&store, &claim(meta, Choice::This(slot, Version(0)))).await;
    assert!(again.token > tenure.token);

    let worker = take(&store, &claim(meta, Choice::This(Slot::worker(1), Version(0)))).await;
    store.release(&worker, worker.floor).await.unwrap();
    let free = entry(&store, &Slot::worker(1)).await;
    assert_eq!(store.forget(&free.slot, free.version).await.unwrap(), Put::Conflict);
    assert!(matches!(entry(&store, &free.slot).await.found, Found::Known(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_one_slot_hears_of_that_slot_alone() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let waiting = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    let mut changes = waiting.watch(&Watched::Slot(election("a"))).await.unwrap();
    for name in ["b", "ab", "a-1"] {
        let tenure = take(&store, &claim(meta, Choice::This(election(name), Version(0)))).await;
        store.release(&tenure, tenure.floor).await.unwrap();
    }
    // A client hears of a change before it sees it.
    waiting.list(Group::Elections).await.unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(100), changes.next()).await;
    assert!(quiet.is_err(), "another slot was announced");
    let tenure = take(&store, &claim(meta, Choice::This(election("a"), Version(0)))).await;
    assert_eq!(changes.next().await, Some(()));
    let mut changes = waiting.watch(&Watched::Slot(election("a"))).await.unwrap();
    store.release(&tenure, tenure.floor).await.unwrap();
    assert_eq!(changes.next().await, Some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn vacancies_have_the_favourite_and_one_to_take_and_count_the_others() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    for number in 0..20 {
        take(&store, &claim(meta, Choice::This(Slot::worker(number), Version(0)))).await;
    }
    let wanted = |first, last| {
        let nonce = Nonce::mint().unwrap();
        Wanted { first, last, favourite: Some(first), nonce, now: unix_ms() }
    };
    let free_slots = store.free_slots(&wanted(10, 40)).await.unwrap();
    assert_eq!((free_slots.held, free_slots.is_complete), (10, false));
    let favourite = free_slots.look.entry(&Slot::worker(10)).unwrap();
    assert_ne!(favourite.presence, Presence::Free);
    let is_unused = |entry: &&Entry| entry.found == Found::New && entry.presence == Presence::Free;
    assert!(free_slots.look.entries.iter().any(|entry| is_unused(&entry)));
    let free_slots = store.free_slots(&wanted(0, 19)).await.unwrap();
    assert_eq!(free_slots.held, 20);
    assert!(free_slots.look.entries.iter().all(|entry| entry.presence != Presence::Free));
    let full = claim(meta, Choice::Any { first: 0, last: 19, favourite: None });
    let Acquired::Full(census) = store.acquire(&full).await.unwrap() else { panic!() };
    assert_eq!((census.held, census.blocked), (20, 0));
}
