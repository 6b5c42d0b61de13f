//! A server that forgets, and one that does not.

use std::time::Duration;

use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Tenure};
use frazil_coord::{Entry, Group, Loss, Presence, Slot, Store, Strength, Version};
use frazil_rig::{AppendOnly, Redis};

use crate::redis::lab::{Place, any, eventually, take};

#[tokio::test]
async fn what_was_flushed_is_vanished_for_its_holder() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 3), version)).await;
    redis.cli(&["FLUSHALL"]).unwrap();
    assert_eq!(
        redis.info("master_replid").unwrap(),
        tenure.settling.history.split(':').nth(1).unwrap()
    );
    let extended = store.extend(&tenure, &place.ask()).await.unwrap();
    assert_eq!(extended, Extended::Lost(Loss::Vanished));
    assert_eq!(store.meta().await.unwrap(), None);
    assert!(store.list(Group::Workers).await.unwrap().is_empty());
    let acquired = store.acquire(&place.claim(any(0, 3), version)).await.unwrap();
    assert_eq!(acquired, Acquired::MetaMoved);
    assert_eq!(redis.cli(&["DBSIZE"]).unwrap(), "0\n", "something was brought back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_without_persistence_forgets_all_and_is_noticed() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    assert_eq!(store.guarantees().uniqueness, Strength::Conditional);
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 3), version)).await;
    redis.restart().unwrap();
    let extended = store.extend(&tenure, &place.ask()).await.unwrap();
    assert_eq!(extended, Extended::Lost(Loss::Vanished));
    assert_eq!(store.meta().await.unwrap(), None);
    assert_ne!(
        redis.info("master_replid").unwrap(),
        tenure.settling.history.split(':').nth(1).unwrap()
    );
}

/// Waits until the presence of all workers has lapsed, by the server's clock.
async fn lapsed(store: &impl Store) {
    eventually("presence to lapse", async || {
        let listed = store.list(Group::Workers).await.unwrap();
        listed.iter().all(|entry| entry.presence == Presence::Free).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synced_log_loses_nothing_so_nobody_waits() {
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let promised = store.guarantees();
    assert_eq!(promised.uniqueness, Strength::Unconditional, "{promised:?}");
    assert!(promised.warnings.is_empty(), "{promised:?}");
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 3), version);
    claim.ttl = Duration::from_millis(300);
    let tenure = take(&store, &claim).await;
    // Twice, so that the lineage acknowledged is not the one before the present.
    for _ in 0..2 {
        redis.restart().unwrap();
        assert_eq!(store.guard().await.unwrap(), None, "nothing is guarded against");
        let other = take(&store, &place.claim(any(0, 3), version)).await;
        assert_ne!(other.slot, tenure.slot);
        assert_ne!(other.settling.history, tenure.settling.history);
    }
    eventually("presence to lapse", async || {
        let listed = store.list(Group::Workers).await.unwrap();
        let entry = listed.iter().find(|entry| entry.slot == tenure.slot).unwrap();
        (entry.presence == Presence::Free).then_some(())
    })
    .await;
    let Extended::Held(extended) = store.extend(&tenure, &place.ask()).await.unwrap() else {
        panic!("lost, though nothing was")
    };
    assert_eq!(extended.token, tenure.token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_may_lose_anything_makes_newcomers_wait_and_the_lapsed_are_out() {
    let unsynced = Redis::builder().persistent(AppendOnly::EverySecond);
    let redis = unsynced.line("appendfsync no").start().unwrap();
    let place = Place::new(format!("{}?isolation=1s", redis.url())).window(60_000);
    let store = place.open().await;
    assert_eq!(store.guarantees().uniqueness, Strength::Conditional);
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    claim.ttl = Duration::from_millis(300);
    let short = take(&store, &claim).await;
    let long = take(&store, &place.claim(any(1, 1), version)).await;
    // On disk, or it would be a test of luck.
    eventually("the log to be synced", async || {
        let pending = redis.info("aof_pending_bio_fsync").unwrap();
        let buffered = redis.info("aof_buffer_length").unwrap();
        (pending == "0" && buffered == "0").then_some(())
    })
    .await;
    assert_eq!(store.guard().await.unwrap(), None);
    redis.restart().unwrap();
    let before = unix_ms();
    // Told before anybody comes, and just as it then is.
    let told = store.guard().await.unwrap().unwrap();
    assert!(told.until >= before + 60_000 + 10_000 + 2000, "{told:?}");
    let Acquired::Full(census) = store.acquire(&place.claim(any(2, 3), version)).await.unwrap()
    else {
        panic!("not guarded")
    };
    assert!(census.next_floor.unwrap() >= before + 60_000 + 10_000 + 2000, "{census:?}");
    assert_eq!((census.blocked, census.poisoned), (2, 0), "{census:?}");
    let guard = store.guard().await.unwrap().unwrap();
    assert_eq!(Some(guard.until), census.next_floor);
    assert!(guard.until >= told.until, "{guard:?} {told:?}");
    assert!(matches!(store.extend(&long, &place.ask()).await, Ok(Extended::Held(_))));
    let extended = store.extend(&short, &place.ask()).await.unwrap();
    assert_eq!(extended, Extended::Lost(Loss::Lapsed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn presence_lapses_by_the_servers_clock_and_the_pool_notices() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url()).window(100);
    let store = place.open().await;
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    claim.ttl = Duration::from_millis(200);
    let first = take(&store, &claim).await;
    lapsed(&store).await;
    let second = take(&store, &place.claim(any(0, 0), version)).await;
    assert!(second.token > first.token && second.floor >= first.horizon, "{second:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_not_overwritten_when_the_marks_of_what_was_used_are_lost() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let meta = place.found(&store).await;
    let (held, left) = (Slot::worker(0), Slot::worker(1));
    let this = |slot: &Slot| Choice::This(slot.clone(), Version(0));
    let tenure = take(&store, &place.claim(this(&held), meta)).await;
    let last = take(&store, &place.claim(this(&left), meta)).await;
    // Nobody is there any more, and its times are not over.
    store.release(&last, last.horizon).await.unwrap();
    let before = store.list(Group::Workers).await.unwrap();
    assert_eq!(redis.cli(&["DEL", "{frazil:lab}:born"]).unwrap(), "1\n");
    for choice in [any(0, 1), any(0, 1), this(&held), this(&left)] {
        let acquired = store.acquire(&place.claim(choice.clone(), meta)).await.unwrap();
        assert!(matches!(acquired, Acquired::Full(_) | Acquired::Taken), "{choice:?} {acquired:?}");
    }
    let record = |entry: &Entry| (entry.slot.clone(), entry.version, entry.found.clone());
    let mut after: Vec<_> = store.list(Group::Workers).await.unwrap().iter().map(record).collect();
    let mut before: Vec<_> = before.iter().map(record).collect();
    after.sort_by_key(|(slot, ..)| slot.clone());
    before.sort_by_key(|(slot, ..)| slot.clone());
    assert_eq!(after, before);
    // What was never used is still to be had, and the holder goes on.
    assert_eq!(take(&store, &place.claim(any(0, 2), meta)).await.slot, Slot::worker(2));
    assert!(matches!(store.extend(&tenure, &place.ask()).await, Ok(Extended::Held(_))));
}

/// Takes away what eviction may take: whole keys, but not meta and the lineage.
fn lose(redis: &Redis, names: &[&str]) {
    for name in names {
        redis.cli(&["DEL", &format!("{{frazil:lab}}:{name}")]).unwrap();
    }
}

/// A newcomer gets no time that was promised: until that has passed it is told to wait.
async fn newcomer_waits(place: &Place, version: Version, promised: &Tenure) {
    let other = place.open().await;
    let number: u32 = promised.slot.name().parse().unwrap();
    let Acquired::Full(census) =
        other.acquire(&place.claim(any(number, number), version)).await.unwrap()
    else {
        panic!("a worker in use was given out")
    };
    assert_eq!((census.held, census.blocked), (0, 1), "{census:?}");
    let taken = eventually("what was promised to pass", async || {
        match other.acquire(&place.claim(any(number, number), version)).await.unwrap() {
            Acquired::Held(tenure) => Some(tenure),
            _ => None,
        }
    })
    .await;
    assert!(taken.floor >= promised.horizon, "{taken:?} overlaps {promised:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newcomers_wait_when_records_and_marks_are_lost_and_meta_is_not() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url()).window(1500);
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 3), version)).await;
    lose(&redis, &["w", "born", "w:idx", "w:held", "w:nonces"]);
    newcomer_waits(&place, version, &tenure).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_that_were_lost_come_back_before_the_records_are_lost_too() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url()).window(60_000);
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 0), version)).await;
    let other = take(&store, &place.claim(any(1, 1), version)).await;
    lose(&redis, &["born"]);
    assert!(matches!(store.extend(&other, &place.ask()).await, Ok(Extended::Held(_))));
    lose(&redis, &["w"]);
    let claim = place.claim(any(0, 0), version);
    let acquired = store.acquire(&claim).await.unwrap();
    assert!(matches!(acquired, Acquired::Full(_)), "{acquired:?} overlaps {tenure:?}");
    let listed = store.list(Group::Workers).await.unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_worker_is_found_again_when_the_indexes_are_lost() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 0), version)).await;
    store.release(&tenure, unix_ms()).await.unwrap();
    lose(&redis, &["w:idx", "w:held"]);
    let again = eventually("the worker", async || {
        match store.acquire(&place.claim(any(0, 0), version)).await.unwrap() {
            Acquired::Held(tenure) => Some(tenure),
            _ => None,
        }
    })
    .await;
    assert!(again.token > tenure.token, "{again:?} after {tenure:?}");
}
