//! The reach of a lane by itself, after a stop, and in a store that is no longer there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;

use super::*;
use crate::error::Error;
use crate::guarantees::Guarantees;
use crate::record::{Meta, Token, Version};
use crate::rules::HEARD_FOR;
use crate::slot::Group;
use crate::store::{Changes, Commit, Committed, Entry, FreeSlots, Look, Put, Wanted, Watched};
use crate::stores::memory::MemoryStore;

const START: UnixMs = 1_800_000_000_000;
const HORIZON: UnixMs = START + 600_000;
const LIMIT_MS: u64 = 10_000;

/// A lane with a clock that the test sets, and a bound that it looks at.
#[derive(Default)]
struct FakeLane {
    now: AtomicU64,
    steady: AtomicU64,
    bound: AtomicU64,
}

impl Lane for FakeLane {
    fn now(&self) -> UnixMs {
        self.now.load(Ordering::Relaxed)
    }

    fn steady(&self) -> UnixMs {
        self.steady.load(Ordering::Relaxed)
    }

    fn open(&self, grant: Grant) {
        self.bound.store(grant.horizon, Ordering::Relaxed);
    }

    fn raise(&self, horizon: UnixMs) {
        self.bound.fetch_max(horizon, Ordering::Relaxed);
    }

    fn last(&self) -> UnixMs {
        0
    }

    fn close(&self) -> UnixMs {
        self.bound.store(0, Ordering::Relaxed);
        0
    }
}

/// A store that can be moved away.
#[derive(Debug, Default)]
struct MovableStore {
    store: MemoryStore,
    is_away: AtomicBool,
}

#[async_trait]
impl Store for MovableStore {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        self.store.read(slots).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.store.list(group).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        self.store.free_slots(wanted).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        self.store.commit(commit).await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.store.put_meta(expected, meta).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.store.forget(slot, version).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.store.watch(watched).await
    }

    fn is_in_place(&self, _: &Slot, _: Nonce) -> bool {
        !self.is_away.load(Ordering::Relaxed)
    }
}

impl std::fmt::Display for MovableStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.fmt(f)
    }
}

/// A lane that was just opened.
struct OpenedLane {
    lane: Arc<FakeLane>,
    store: Arc<MovableStore>,
    watchdog: Watchdog,
    /// When the keeper's task ran last, in boot time.
    turned: Duration,
}

impl OpenedLane {
    fn new() -> Self {
        let (lane, store) = (Arc::new(FakeLane::default()), Arc::new(MovableStore::default()));
        lane.now.store(START, Ordering::Relaxed);
        let watchdog = Watchdog::new(lane.clone(), store.clone());
        watchdog.open(grant(), Nonce::from_bits(1), boot_time());
        let turned = boot_time();
        watchdog.turn(turned);
        Self { lane, store, watchdog, turned }
    }

    /// Time goes by, in one piece; then the keeper's task runs.
    fn pass(&mut self, seconds: u64) {
        self.lane.now.fetch_add(seconds * 1000, Ordering::Relaxed);
        self.turn(seconds);
    }

    fn turn(&mut self, seconds: u64) {
        self.turned += Duration::from_secs(seconds);
        self.watchdog.turn(self.turned);
    }

    /// How far the lane may go, counted from the start.
    fn bound(&self) -> u64 {
        self.lane.bound.load(Ordering::Relaxed) - START
    }
}

fn grant() -> Grant {
    Grant { worker: 7, token: Token(1), floor: START - 1, horizon: HORIZON }
}

#[test]
fn a_lane_whose_keeper_does_not_run_gets_no_further_than_its_leash() {
    let opened = OpenedLane::new();
    assert_eq!(opened.bound(), LIMIT_MS);
    opened.lane.now.fetch_add(3000, Ordering::Relaxed);
    opened.watchdog.raise(HORIZON + 1, boot_time());
    assert_eq!(opened.bound(), 3000 + LIMIT_MS, "whatever was acknowledged");
}

#[test]
fn a_lane_whose_keeper_runs_gets_all_that_was_acknowledged_and_no_more() {
    let mut opened = OpenedLane::new();
    for seconds in 1..=590 {
        opened.watchdog.request_ended(opened.turned);
        opened.pass(1);
        assert_eq!(opened.bound(), seconds * 1000 + LIMIT_MS);
    }
    opened.pass(5);
    assert_eq!(opened.bound(), HORIZON - START);
}

#[test]
fn a_lane_whose_keeper_hears_nothing_stops_before_newcomers_start() {
    let mut opened = OpenedLane::new();
    for _ in 0..10 {
        opened.pass(2);
    }
    let heard_for = u64::try_from(HEARD_FOR.as_millis()).unwrap();
    assert!(opened.bound() <= heard_for, "{} ms", opened.bound());
    opened.watchdog.request_ended(opened.turned);
    opened.pass(2);
    assert_eq!(opened.bound(), 22_000 + LIMIT_MS);
}

#[test]
fn after_a_stop_a_lane_waits_for_the_answer_to_a_request_made_since() {
    let mut opened = OpenedLane::new();
    let before_stop = opened.turned;
    opened.pass(60);
    assert_eq!(opened.bound(), LIMIT_MS, "nobody was asked");
    opened.watchdog.request_ended(before_stop);
    opened.pass(2);
    assert_eq!(opened.bound(), LIMIT_MS, "the answer is as old as the stop");
    opened.watchdog.request_ended(opened.turned);
    opened.pass(2);
    assert_eq!(opened.bound(), 64_000 + LIMIT_MS);
}

#[test]
fn a_keeper_that_woke_up_before_its_leash_need_not_ask_again() {
    let mut opened = OpenedLane::new();
    let woke_up = opened.turned + Duration::from_secs(59);
    opened.watchdog.request_ended(woke_up);
    opened.pass(60);
    assert_eq!(opened.bound(), 60_000 + LIMIT_MS);
}

#[test]
fn an_answer_that_waited_for_the_end_of_a_stop_moves_nothing() {
    let opened = OpenedLane::new();
    let before_stop = boot_time().saturating_sub(Duration::from_secs(11));
    opened.lane.now.fetch_add(11_000, Ordering::Relaxed);
    opened.watchdog.raise(HORIZON + 1, before_stop);
    assert_eq!(opened.bound(), LIMIT_MS);
    opened.watchdog.open(grant(), Nonce::from_bits(2), before_stop);
    assert_eq!(opened.lane.bound.load(Ordering::Relaxed), grant().floor, "not even a first time");
}

#[test]
fn a_lane_stops_where_its_store_was_moved_away() {
    let mut opened = OpenedLane::new();
    opened.store.is_away.store(true, Ordering::Relaxed);
    opened.pass(2);
    assert_eq!(opened.bound(), LIMIT_MS);
    opened.store.is_away.store(false, Ordering::Relaxed);
    opened.pass(2);
    assert_eq!(opened.bound(), 4000 + LIMIT_MS);
}

#[test]
fn a_lane_that_was_closed_gets_nothing() {
    let mut opened = OpenedLane::new();
    opened.watchdog.close();
    opened.pass(2);
    assert_eq!(opened.lane.bound.load(Ordering::Relaxed), 0);
}

#[test]
fn a_clock_that_stepped_back_is_not_waited_for_by_a_lane_that_rides() {
    let mut opened = OpenedLane::new();
    opened.lane.now.store(START - 3_600_000, Ordering::Relaxed);
    opened.lane.steady.store(START + 4000, Ordering::Relaxed);
    opened.turn(4);
    assert_eq!(opened.bound(), 4000 + LIMIT_MS);
}

#[test]
fn a_lane_that_runs_ahead_of_now_has_times_at_once() {
    let opened = OpenedLane::new();
    let ahead = Grant { floor: START + 2 * LIMIT_MS, ..grant() };
    opened.watchdog.open(ahead, Nonce::from_bits(2), boot_time());
    // No further than it needs: a directory that is replaced right away starts as far ahead.
    assert_eq!(opened.bound(), 2 * LIMIT_MS + LIMIT_MS / 5);
}
