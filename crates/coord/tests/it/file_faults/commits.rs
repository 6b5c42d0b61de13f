//! What a commit, a look for free workers, a watch and forgetting do to the files.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use frazil_coord::internal::stores::file::FileStore;
use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_coord::internal::{Acquired, Choice, Claim, Extended, Leasing, Released, Tenure};
use frazil_coord::{
    Act, Change, Commit, Committed, Found, Group, Nonce, PresenceChange, Present, Put, Record,
    Slot, Store, Version, Watched,
};
use tokio::task::JoinSet;

use super::desk::{ask, claim, entry, is_held, open, take, try_open};
use super::{Copied, file, home, slot};

/// A change of a slot as it is, for a holder with this nonce.
async fn change(store: &FileStore, slot: &Slot, nonce: Nonce) -> Change {
    let look = store.read(std::slice::from_ref(slot)).await.unwrap();
    let seen = look.entry(slot).unwrap();
    let claim = Claim { nonce, ..claim(store, slot, unix_ms()).await };
    let record =
        frazil_coord::internal::rules::acquire(&seen.found, &claim, &look.history).unwrap();
    Change {
        slot: slot.clone(),
        version: seen.version,
        nonce: seen.nonce(),
        present: Present::Nobody,
        record,
        presence_change: PresenceChange::For(claim.ttl),
    }
}

fn commit(changes: Vec<Change>) -> Commit {
    Commit { act: Act::Acquire, meta: None, history: None, changes }
}

fn renewal(tenure: &Tenure, nonce: Nonce) -> Change {
    Change {
        slot: tenure.slot.clone(),
        version: tenure.version,
        nonce: Some(nonce),
        present: Present::Holder,
        record: tenure.record(),
        presence_change: PresenceChange::For(Duration::from_secs(1)),
    }
}

#[tokio::test]
async fn a_version_that_matches_with_another_nonce_is_a_conflict() {
    let home = home();
    let store = open(home.path()).await;
    let tenure = take(&store, &slot(), unix_ms()).await;
    // Else the lock alone would keep the other out.
    store.abandon(&slot());
    let other = Nonce::mint().unwrap();
    let committed = store.commit(&commit(vec![renewal(&tenure, other)])).await.unwrap();
    let Committed::Conflict(look) = committed else { panic!("{committed:?}") };
    assert_eq!(look.entry(&slot()).unwrap().nonce(), Some(tenure.nonce));
    // Another test may be starting a process, which has a copy of every lock until it runs.
    while let Committed::Conflict(_) =
        store.commit(&commit(vec![renewal(&tenure, tenure.nonce)])).await.unwrap()
    {
        tokio::task::yield_now().await;
    }
    assert!(is_held(&store, &slot()).await);
}

#[tokio::test]
async fn a_commit_of_several_changes_is_served_once_while_a_slot_carries_its_nonce() {
    let home = home();
    let store = open(home.path()).await;
    let nonce = Nonce::mint().unwrap();
    let changes = [
        change(&store, &Slot::worker(1), nonce).await,
        change(&store, &Slot::worker(2), nonce).await,
    ];
    let several = commit(changes.to_vec());
    let first = store.commit(&several).await.unwrap();
    assert!(matches!(first, Committed::Done { index: 0, .. }), "{first:?}");
    for lapsed in [false, true] {
        if lapsed {
            store.abandon(&Slot::worker(1));
        }
        let again = store.commit(&several).await.unwrap();
        let Committed::Conflict(look) = again else { panic!("served twice: {again:?}") };
        assert_eq!(look.carrying(nonce).unwrap().0.slot, Slot::worker(1), "lapsed: {lapsed}");
    }
    assert_eq!(entry(&store, &Slot::worker(2)).await, None);
    // The second change is free to be made once nothing carries the nonce.
    let mut released = changes[0].record.clone();
    released.nonce = None;
    let version = entry(&store, &Slot::worker(1)).await.unwrap().version;
    let ending = Change {
        version,
        nonce: Some(nonce),
        present: Present::Holder,
        record: released,
        presence_change: PresenceChange::Ended,
        ..changes[0].clone()
    };
    let ended = store.commit(&commit(vec![ending])).await.unwrap();
    assert!(matches!(ended, Committed::Done { .. }), "{ended:?}");
    let last = store.commit(&several).await.unwrap();
    assert!(matches!(last, Committed::Done { index: 1, .. }), "{last:?}");
}

/// Files as version 0.1.0 left them.
const OLD_META: &str = r#"{"version":1794829750451,"format":1,"incarnation":"08d45caa02e1303136005eca8eee30ed","layout":"f898a669f340f757 time:41 worker:10 sequence:12 @2024-01-01T00:00:00Z tick:1ms","first_worker":0,"last_worker":1023,"window_ms":600000,"quarantine":0,"created":1794829750451}
"#;
const OLD_RELEASED: &str = r#"{"version":1794829750460,"token":1794829750454,"nonce":null,"holder":"vm:28753","floor":0,"horizon":1794829750460,"renewed":1794829750454,"info":{"host":"vm","pid":"28753","version":"0.1.0"}}
"#;
const OLD_LEFT: &str = r#"{"version":1794829750460,"token":1794829750454,"nonce":"6bd0a1f9b3c1a4c6d9f2f0e1a7b8c9d0","holder":"vm:28753","floor":0,"horizon":1794829810454,"renewed":1794829750454}
"#;

#[tokio::test]
async fn records_of_the_version_before_go_on() {
    let home = home();
    let store = try_open(home.path(), Copied::Refuse).await.unwrap();
    let put = |name: &str, text: &str| fs::write(file(home.path(), name), text).unwrap();
    for (name, text) in [("meta", OLD_META), ("w/5", OLD_RELEASED), ("w/6", OLD_LEFT)] {
        put(name, text);
    }
    for lock in [".meta.lock", "w/.5.lock", "w/.6.lock"] {
        put(lock, "used\n");
    }
    let now = 1_794_829_810_454;
    for (number, floor) in [(5, 1_794_829_750_460), (6, now)] {
        let slot = Slot::worker(number);
        let tenure = take(&store, &slot, now).await;
        assert_eq!((tenure.floor, tenure.token.0), (floor, now));
        let more = frazil_coord::internal::Ask { now, ..ask(now + 90_000) };
        let extended = store.extend(&tenure, &more).await.unwrap();
        let Extended::Held(held) = extended else { panic!("{extended:?}") };
        assert_eq!(held.horizon, now + 90_000);
        assert_eq!(store.release(&held, now + 1).await, Ok(Released::Done));
        let left = entry(&store, &slot).await.unwrap().found;
        assert!(
            matches!(left, Found::Known(Record { horizon, nonce: None, .. }) if horizon == now + 1)
        );
    }
}

#[tokio::test]
async fn a_forgotten_slot_leaves_no_file_and_was_never_used() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    for group in [Group::Elections, Group::Scopes] {
        let slot = Slot::named(group, "x").unwrap();
        let tenure = take(&a, &slot, unix_ms()).await;
        assert_eq!(b.forget(&slot, tenure.version).await, Ok(Put::Conflict), "it is held");
        a.release(&tenure, unix_ms()).await.unwrap();
        assert_eq!(b.forget(&slot, tenure.version).await, Ok(Put::Conflict), "an old version");
        let version = entry(&b, &slot).await.unwrap().version;
        assert!(matches!(b.forget(&slot, version).await, Ok(Put::Done(_))));
        assert_eq!(entry(&a, &slot).await, None);
        assert_eq!(fs::read_dir(file(home.path(), group.letter())).unwrap().count(), 0);
        assert_eq!(take(&a, &slot, unix_ms()).await.floor, 0);
    }
    let lost = Slot::named(Group::Scopes, "lost").unwrap();
    let tenure = take(&a, &lost, unix_ms()).await;
    a.release(&tenure, 1).await.unwrap();
    fs::remove_file(file(home.path(), "s/lost")).unwrap();
    let version = entry(&b, &lost).await.unwrap().version;
    assert!(matches!(b.forget(&lost, version).await, Ok(Put::Done(_))), "its record is gone");
    assert_eq!(entry(&a, &lost).await, None);
    let worker = take(&a, &slot(), unix_ms()).await;
    a.release(&worker, 1).await.unwrap();
    let version = entry(&b, &slot()).await.unwrap().version;
    assert_eq!(b.forget(&slot(), version).await, Ok(Put::Conflict), "workers stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_and_taking_at_once_never_makes_two_holders() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let slot = Slot::named(Group::Elections, "x").unwrap();
    for _ in 0..100 {
        let tenure = take(&a, &slot, unix_ms()).await;
        a.release(&tenure, 1).await.unwrap();
        let version = entry(&b, &slot).await.unwrap().version;
        let wish = claim(&a, &slot, unix_ms()).await;
        let (forgotten, taken) = tokio::join!(b.forget(&slot, version), a.acquire(&wish));
        let (forgotten, taken) = (forgotten.unwrap(), taken.unwrap());
        let Acquired::Held(held) = taken else {
            assert!(matches!(forgotten, Put::Done(_)), "{taken:?}");
            continue;
        };
        let other = b.acquire(&claim(&b, &slot, unix_ms()).await).await;
        assert_eq!(other, Ok(Acquired::Taken));
        assert_eq!(a.release(&held, 1).await, Ok(Released::Done));
    }
}

#[tokio::test]
async fn a_watch_of_one_slot_does_not_hear_of_others() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let named = |name| Slot::named(Group::Elections, name).unwrap();
    let mut changes = b.watch(&Watched::Slot(named("x"))).await.unwrap();
    take(&a, &named("y"), unix_ms()).await;
    let quiet = tokio::time::timeout(Duration::from_millis(100), changes.next()).await;
    assert!(quiet.is_err(), "another slot's change was announced");
    take(&a, &named("x"), unix_ms()).await;
    let heard = tokio::time::timeout(Duration::from_secs(5), changes.next()).await;
    assert_eq!(heard, Ok(Some(())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_claims_at_once_get_distinct_workers() {
    let home = home();
    let stores = [open(home.path()).await, open(home.path()).await];
    let range = Choice::Any { first: 0, last: 1023, favourite: None };
    let any = Claim { choice: range, ..claim(&stores[0], &slot(), unix_ms()).await };
    let start = boot_time();
    let mut claims = JoinSet::new();
    for index in 0..1024 {
        let store = stores[index % 2].clone();
        let any = Claim { nonce: Nonce::mint().unwrap(), ..any.clone() };
        claims.spawn(async move { store.acquire(&any).await.unwrap() });
    }
    let mut taken = BTreeSet::new();
    while let Some(acquired) = claims.join_next().await {
        match acquired.unwrap() {
            Acquired::Held(tenure) => assert!(taken.insert(tenure.slot), "a worker twice"),
            other => panic!("wanted a tenure, got {other:?}"),
        }
    }
    println!("{} claims: {:?}", taken.len(), boot_time() - start);
    assert_eq!(taken.len(), 1024);
    let last = stores[0].acquire(&Claim { nonce: Nonce::mint().unwrap(), ..any }).await.unwrap();
    assert!(matches!(last, Acquired::Full(census) if census.held == 1024), "{last:?}");
    assert!(is_held(&stores[1], &Slot::worker(1023)).await);
}

#[tokio::test]
async fn a_slot_whose_record_is_gone_is_not_taken_for_one_that_was_never_used() {
    let home = home();
    let store = open(home.path()).await;
    let unused = change(&store, &slot(), Nonce::mint().unwrap()).await;
    assert_eq!(unused.version, Version(0));
    let tenure = take(&store, &slot(), unix_ms()).await;
    store.release(&tenure, 1).await.unwrap();
    fs::remove_file(file(home.path(), "w/7")).unwrap();
    let committed = store.commit(&commit(vec![unused])).await.unwrap();
    assert!(matches!(committed, Committed::Conflict(_)), "{committed:?}");
}
