//! A server whose clock is stepped.

use std::time::Duration;

use frazil_coord::internal::repair;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Choice, Claim, Extended, Leasing};
use frazil_coord::{Found, Group, Presence, Slot, Store, Version};
use frazil_rig::{FalseClock, Redis};

use crate::redis::lab::{Place, any, eventually, take};

/// A server with a clock of its own.
struct Server {
    _redis: Redis,
    clock: FalseClock,
    url: String,
}

impl Server {
    fn start() -> Self {
        let clock = FalseClock::new().unwrap();
        let redis = Redis::builder().clock(&clock).start().unwrap();
        let url = redis.url();
        Self { _redis: redis, clock, url }
    }

    fn step(&self, milliseconds: i64) {
        self.clock.set(milliseconds * 1_000_000).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stepped_clock_frees_a_slot_early_and_never_overlaps() {
    let server = Server::start();
    let place = Place::new(&server.url).window(1500);
    let first = eventually("the server", async || place.try_open().await.ok()).await;
    let version = place.found(&first).await;
    let mut claim = place.claim(any(0, 0), version);
    claim.ttl = Duration::from_secs(5);
    let tenure = take(&first, &claim).await;
    server.step(8000);
    let listed = first.list(Group::Workers).await.unwrap();
    assert_eq!(listed[0].presence, Presence::Free, "the clock did not step");
    let second = place.open().await;
    let mut claim = place.claim(any(0, 0), version);
    // What would overlap is refused: the holder may still use times up to its horizon.
    claim.now = tenure.horizon - 2001;
    match second.acquire(&claim).await.unwrap() {
        Acquired::Full(census) => assert_eq!(census.next_floor, Some(tenure.horizon)),
        other => panic!("{other:?}"),
    }
    let taken = take(&second, &place.claim(any(0, 0), version)).await;
    assert!(taken.floor >= tenure.horizon, "{taken:?} overlaps {tenure:?}");
    assert!(taken.horizon <= unix_ms() + 1500 + 2000, "the clock's step went into {taken:?}");
    assert!(matches!(first.extend(&tenure, &place.ask()).await, Ok(Extended::Lost(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_set_back_costs_no_more_than_time() {
    let server = Server::start();
    let place = Place::new(&server.url).window(60_000);
    let store = eventually("the server", async || place.try_open().await.ok()).await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 0), version)).await;
    server.step(-3_600_000);
    let Extended::Held(extended) = store.extend(&tenure, &place.ask()).await.unwrap() else {
        panic!("not held")
    };
    assert!(extended.horizon >= tenure.horizon && extended.version > tenure.version);
    let usable = extended.usable;
    assert_eq!(usable, tenure.usable, "further than the server's clock allows");
    store.release(&tenure, unix_ms()).await.unwrap();
    server.step(-8000);
    let mut claim = place.claim(any(0, 0), version);
    claim.ttl = Duration::from_millis(1);
    let next = take(&store, &claim).await;
    assert!(next.token > tenure.token, "{next:?} after {tenure:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_further_from_the_servers_clock_than_allowed_writes_nothing() {
    let server = Server::start();
    let place = Place::new(&server.url);
    let store = eventually("the server", async || place.try_open().await.ok()).await;
    let version = place.found(&store).await;
    for step in [-11_000, 11_000, 3_600_000] {
        server.step(step);
        let off = i64::try_from(unix_ms()).unwrap() + step;
        for choice in [any(0, 3), Choice::This(Slot::worker(1), Version(0))] {
            let acquired = store.acquire(&place.claim(choice, version)).await.unwrap();
            let Acquired::ClockOff { store_now } = acquired else { panic!("{acquired:?}") };
            assert!(i64::try_from(store_now).unwrap().abs_diff(off) < 5000, "{store_now} {off}");
        }
        assert!(store.list(Group::Workers).await.unwrap().is_empty());
    }
    server.step(0);
    take(&store, &place.claim(any(0, 3), version)).await;
}

/// So that a leader whose clock was ahead does not leave tokens behind that nobody reaches after a wipe.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_of_a_leader_is_the_servers_time_whatever_its_own_clock_says() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url()).window(0);
    let store = place.open().await;
    let version = place.found(&store).await;
    for (name, off) in [("ahead", 3_600_000), ("behind", -3_600_000)] {
        let slot = Slot::named(Group::Elections, name).unwrap();
        let claim = place.claim(Choice::This(slot, Version(0)), version);
        let now = claim.now.checked_add_signed(off).unwrap();
        let token = take(&store, &Claim { now, ..claim }).await.token;
        assert!(token.0.abs_diff(unix_ms()) < 60_000, "{name}: {token}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_replaces_a_lost_record_counts_by_the_servers_clock() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    place.found(&store).await;
    for off in [-3_600_000, 3_600_000] {
        let meta = store.meta().await.unwrap().unwrap();
        let tenure = take(&store, &place.claim(any(0, 1), meta.version)).await;
        redis.cli(&["HDEL", "{frazil:lab}:w", tenure.slot.name()]).unwrap();
        // Whoever repairs it has a clock that is an hour off.
        let before = unix_ms();
        let ours = before.checked_add_signed(off).unwrap();
        let claim = Claim::to_judge(&meta, ours);
        assert_eq!(repair::lost_records(&store, &claim, || ours).await, Ok(1));
        let entries = store.list(Group::Workers).await.unwrap();
        let entry = entries.into_iter().find(|entry| entry.slot == tenure.slot).unwrap();
        let Found::Known(record) = entry.found else { panic!("{entry:?}") };
        assert!(record.horizon >= tenure.horizon, "{record:?} is below what was promised");
        let latest = unix_ms() + place.window_ms;
        assert!((before + place.window_ms..=latest).contains(&record.horizon), "{record:?}");
    }
}
