//! A log that is synced once a second: what has settled is kept, and nobody counts on more.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use frazil_coord::internal::rules::{UNSETTLED_MS, floor_of};
use frazil_coord::internal::stores::redis::RedisStore;
use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released, Tenure};
use frazil_coord::{Group, History, Presence, Slot, Store, Strength};
use frazil_rig::{AppendOnly, Redis};

use crate::redis::lab::{Place, any, eventually, extended, take};

fn synced_each_second() -> Redis {
    Redis::builder().persistent(AppendOnly::EverySecond).start().unwrap()
}

/// When the present history began, by the server's clock.
fn began(redis: &Redis) -> u64 {
    let said = redis.cli(&["HGET", "{frazil:lab}:lineage", "began"]).unwrap();
    said.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_holders_go_on_and_newcomers_wait_for_seconds() {
    let redis = synced_each_second();
    let place = Place::new(redis.url());
    let (store, other) = (place.open().await, place.open().await);
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    claim.ttl = Duration::from_secs(10);
    let tenure = take(&store, &claim).await;
    assert!(store.settle_all().await.unwrap(), "nothing settles");
    redis.kill();
    // Longer than the holder's time to live.
    let end = boot_time() + Duration::from_secs(14);
    eventually("the outage to last", async || (boot_time() >= end).then_some(())).await;
    redis.restart().unwrap();
    let back = boot_time();
    let listed = other.list(Group::Workers).await.unwrap();
    assert_eq!(listed[0].presence, Presence::Free, "it did not lapse");
    let Acquired::Full(census) = other.acquire(&place.claim(any(1, 1), version)).await.unwrap()
    else {
        panic!("a newcomer was let in at once")
    };
    assert_eq!(census.blocked, 1, "{census:?}");
    let outcome = extended(&store, &tenure, &place.ask()).await;
    let Extended::Held(held) = outcome else { panic!("{outcome:?}") };
    assert_eq!(held.token, tenure.token);
    assert_ne!(held.settling.history, tenure.settling.history);
    let newcomer = eventually("the guard to pass", async || {
        match other.acquire(&place.claim(any(1, 1), version)).await.unwrap() {
            Acquired::Held(tenure) => Some(tenure),
            _ => None,
        }
    })
    .await;
    assert!(boot_time() - back < Duration::from_secs(40), "it took {:?}", boot_time() - back);
    assert!(newcomer.floor > began(&redis) + UNSETTLED_MS, "{newcomer:?}");
    let outcome = extended(&store, &held, &place.ask()).await;
    assert!(matches!(outcome, Extended::Held(_)), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_is_used_once_it_has_settled_and_a_released_worker_at_once() {
    let redis = synced_each_second();
    let place = Place::new(redis.url()).window(60_000);
    let store = place.open().await;
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    (claim.ttl, claim.ask) = (Duration::from_millis(100), claim.now + 100);
    let left = take(&store, &claim).await;
    eventually("presence to lapse", async || {
        let listed = store.list(Group::Workers).await.unwrap();
        (listed[0].presence == Presence::Free).then_some(())
    })
    .await;
    let before = boot_time();
    let taken = take(&store, &place.claim(any(0, 0), version)).await;
    assert!(boot_time() - before >= Duration::from_secs(2), "{:?}", boot_time() - before);
    assert!(taken.floor >= left.horizon && taken.usable == taken.horizon, "{taken:?}");
    assert_eq!(store.release(&taken, taken.floor).await, Ok(Released::Done));
    let claim = place.claim(any(0, 0), version);
    let again = take(&store, &claim).await;
    assert_eq!(again.usable, claim.now + UNSETTLED_MS, "{again:?}");
    let mut latest = again.clone();
    eventually("the acquisition to settle", async || {
        let outcome = store.extend(&latest, &place.ask()).await.unwrap();
        let Extended::Held(tenure) = outcome else { panic!("{outcome:?}") };
        latest = tenure;
        (latest.usable > again.usable).then_some(())
    })
    .await;
    assert_eq!(latest.usable, latest.horizon, "within 30 s of what has settled: {latest:?}");
}

/// The file that the server appends to.
fn log(redis: &Redis) -> PathBuf {
    let files = fs::read_dir(redis.directory().join("appendonlydir")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    files.find(|path| path.to_string_lossy().contains(".incr.")).unwrap()
}

/// The length of the log now, at which a command ends: all that was answered is in it.
async fn log_length(redis: &Redis) -> u64 {
    eventually("the log to be written", async || {
        (redis.info("aof_buffer_length").unwrap() == "0").then_some(())
    })
    .await;
    fs::metadata(log(redis)).unwrap().len()
}

/// Kills the server, cuts its log as a crash of the machine would, and starts it again.
fn lose_all_after(redis: &Redis, length: u64) {
    redis.kill();
    let log = fs::File::options().write(true).open(log(redis)).unwrap();
    assert!(log.metadata().unwrap().len() > length, "nothing was written since");
    log.set_len(length).unwrap();
    drop(log);
    redis.restart().unwrap();
}

/// The floors of whoever comes next: in this history, and if nothing could have been lost.
async fn floors(place: &Place, store: &RedisStore, lost: &Tenure) -> (u64, u64) {
    let look = store.read(std::slice::from_ref(&lost.slot)).await.unwrap();
    let found = &look.entry(&lost.slot).unwrap().found;
    let claim = place.claim(any(0, 3), look.meta.as_ref().unwrap().version);
    (floor_of(found, &claim, &look.history), floor_of(found, &claim, &History::default()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_acquisition_could_use_is_above_nobodys_floor() {
    let redis = synced_each_second();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let kept = take(&store, &place.claim(any(0, 0), version)).await;
    let length = log_length(&redis).await;
    let lost = take(&store, &place.claim(any(1, 1), version)).await;
    lose_all_after(&redis, length);
    let listed = store.list(Group::Workers).await.unwrap();
    assert_eq!(listed.len(), 1, "the acquisition was not lost: {listed:?}");
    let (guarded, naive) = floors(&place, &store, &lost).await;
    assert!(guarded >= lost.usable, "{guarded} is in the midst of {lost:?}");
    assert!(naive < lost.usable, "without the guard nothing overlaps either: {naive}");
    let outcome = extended(&store, &kept, &place.ask()).await;
    assert!(matches!(outcome, Extended::Held(_)), "{outcome:?}");
    let outcome = extended(&store, &lost, &place.ask()).await;
    assert!(matches!(outcome, Extended::Lost(_)), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_that_was_lost_was_never_used_and_its_holder_goes_on() {
    let redis = synced_each_second();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    (claim.ttl, claim.ask) = (Duration::from_millis(100), claim.now + 100);
    let early = take(&store, &claim).await;
    assert!(store.settle_all().await.unwrap(), "nothing settles");
    let length = log_length(&redis).await;
    let other = place.open().await;
    let late = place.claim(any(0, 0), version);
    let wanted = late.clone();
    let taking = tokio::spawn(async move { other.acquire(&wanted).await });
    eventually("the takeover to be written", async || {
        let record = redis.cli(&["HGET", "{frazil:lab}:w", "0"]).unwrap();
        record.contains(&late.nonce.to_string()).then_some(())
    })
    .await;
    lose_all_after(&redis, length);
    // The control: a server that acknowledged it would have had two holders.
    let record = redis.cli(&["HGET", "{frazil:lab}:w", "0"]).unwrap();
    assert!(record.contains(&early.nonce.to_string()), "the takeover was not lost: {record}");
    let acquired = taking.await.unwrap().unwrap();
    assert!(matches!(acquired, Acquired::Unsure(..)), "used before it had settled: {acquired:?}");
    let outcome = extended(&store, &early, &place.ask()).await;
    let Extended::Held(held) = outcome else { panic!("{outcome:?}") };
    assert_eq!(held.token, early.token);
    let Acquired::Unsure(slot, read) = acquired else { unreachable!() };
    let again = frazil_coord::internal::Claim { choice: Choice::This(slot, read), ..late };
    let acquired = store.acquire(&again).await.unwrap();
    assert!(matches!(acquired, Acquired::Taken | Acquired::Full(_)), "{acquired:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_extension_could_use_is_above_nobodys_floor() {
    let redis = synced_each_second();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    // Its first horizon settles, and its next is lost.
    let mut claim = place.claim(any(0, 0), version);
    claim.ask = claim.now + 20_000;
    let first = take(&store, &claim).await;
    assert!(store.settle_all().await.unwrap(), "nothing settles");
    let length = log_length(&redis).await;
    let Extended::Held(lost) = store.extend(&first, &place.ask()).await.unwrap() else {
        panic!("not held")
    };
    assert!(lost.usable < lost.horizon, "beyond what has settled by any length: {lost:?}");
    assert!(lost.usable > first.horizon, "{lost:?} uses nothing that can be lost");
    lose_all_after(&redis, length);
    let (guarded, naive) = floors(&place, &store, &lost).await;
    assert!(guarded >= lost.usable, "{guarded} is in the midst of {lost:?}");
    assert!(naive < lost.usable, "without the guard nothing overlaps either: {naive}");
    // The holder itself gets back what was lost.
    let mut ask = place.ask();
    ask.horizon = 0;
    let outcome = extended(&store, &lost, &ask).await;
    let Extended::Held(held) = outcome else { panic!("{outcome:?}") };
    assert!(held.horizon >= lost.horizon && held.usable >= lost.usable, "{held:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_not_synced_during_snapshots_promises_nothing() {
    let always = Redis::builder().persistent(AppendOnly::Always);
    let redis = always.line("no-appendfsync-on-rewrite yes").start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    place.found(&store).await;
    let promised = store.guarantees();
    assert_eq!(promised.uniqueness, Strength::Conditional, "{promised:?}");
    let warns = |word: &str| promised.warnings.iter().any(|warning| warning.contains(word));
    assert!(warns("no-appendfsync-on-rewrite"), "{promised:?}");
    assert_eq!(store.read(&[]).await.unwrap().history.settled, None);
    assert!(!store.settle_all().await.unwrap(), "it settled");
    redis.restart().unwrap();
    let before = unix_ms();
    let guard = store.guard().await.unwrap().expect("nobody waits");
    assert!(guard.until >= before + place.window_ms, "{guard:?}");
    assert_eq!(store.read(&[Slot::worker(0)]).await.unwrap().history.settled, None);
}
