//! A keeper at work, against a store that has moods and a lane that keeps account.

pub(crate) mod lane;
mod moody;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_coord::internal::keeper::{Keeper, Setup};
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Choice, Claim, Leasing, Tenure};
use frazil_coord::{Act, Entry, Found, Group, Nonce, Presence, Put, Slot, Store, Timing, Version};
use frazil_coord::{FirstUse, Grant, Judge, LeaseState, LeaseStatus, Waiting};

use self::lane::{Diary, Event, TestLane};
use self::moody::MoodyStore;

/// No test waits longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(20);
const TIMING: Timing = Timing::DEFAULT
    .with_ttl(Duration::from_millis(300))
    .with_heartbeat(Duration::from_millis(100))
    .with_outage_budget(Duration::from_millis(900));

/// A keeper with everything around it.
struct KeeperFixture {
    memory: MemoryStore,
    store: Arc<MoodyStore>,
    lane: Arc<TestLane>,
    diary: Diary,
    keeper: Keeper,
}

impl KeeperFixture {
    /// A keeper that wants one of workers 0 to `last`.
    fn start(last: u32, mood: impl FnOnce(&MoodyStore)) -> Self {
        let (memory, diary) = (MemoryStore::new(), Diary::default());
        let store = Arc::new(MoodyStore::new(memory.clone(), diary.clone()));
        mood(&store);
        let lane = TestLane::new(diary.clone());
        let setup = setup("keeper", last, TIMING);
        let keeper = Keeper::start(store.clone(), lane.clone(), setup).unwrap();
        Self { memory, store, lane, diary, keeper }
    }

    /// A keeper that has its first worker.
    async fn held(last: u32) -> (Self, Grant) {
        let scene = Self::start(last, |_| {});
        let status = scene.status(|status| status.state == LeaseState::Held).await;
        (scene, status.grant.unwrap())
    }

    /// Waits for a status.
    async fn status(&self, wanted: impl Fn(&LeaseStatus) -> bool) -> LeaseStatus {
        let mut statuses = self.keeper.status();
        let reached = tokio::time::timeout(PATIENCE, statuses.wait_for(|s| wanted(s))).await;
        match reached {
            Ok(status) => status.unwrap().clone(),
            Err(_) => panic!("still {:?}", self.keeper.status().borrow()),
        }
    }

    async fn entry(&self, worker: u32) -> Entry {
        let entries = self.memory.list(Group::Workers).await.unwrap();
        entries.into_iter().find(|entry| entry.slot == Slot::worker(worker)).unwrap()
    }

    /// Somebody else takes a worker, whoever is present there.
    async fn take_over(&self, worker: u32) -> Tenure {
        loop {
            self.memory.expire(&Slot::worker(worker));
            let read = self.entry(worker).await.version;
            let acquired = self.memory.acquire(&self.claim(worker, read).await).await.unwrap();
            // The keeper may have renewed in between.
            if let Acquired::Held(tenure) = acquired {
                return tenure;
            }
        }
    }

    async fn claim(&self, worker: u32, read: Version) -> Claim {
        let meta = self.memory.meta().await.unwrap().unwrap();
        let now = unix_ms();
        Claim {
            choice: Choice::This(Slot::worker(worker), read),
            nonce: Nonce::mint().unwrap(),
            holder: "other".into(),
            info: BTreeMap::new(),
            ttl: PATIENCE,
            now,
            ask: now + 900,
            window_ms: meta.value.window_ms,
            quarantine: meta.value.quarantine,
            meta: meta.version,
        }
    }

    fn events(&self) -> Vec<Event> {
        self.diary.lock().unwrap().clone()
    }

    fn opened(&self) -> Vec<Grant> {
        let events = self.events().into_iter();
        events
            .filter_map(|e| if let Event::Open { grant, .. } = e { Some(grant) } else { None })
            .collect()
    }
}

/// What somebody who wants one of workers 0 to `last` tells a keeper.
fn setup(holder: &str, last: u32, timing: Timing) -> Setup {
    Setup {
        timing,
        layout: "layout".into(),
        workers: Some((0, last)),
        last_worker: 1023,
        first_use: FirstUse::AtOnce,
        holder: holder.into(),
        info: BTreeMap::new(),
        favourite: None,
    }
}

/// Waits until something is the case.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let looks = async {
        let mut pace = tokio::time::interval(Duration::from_millis(2));
        while !is_so().await {
            pace.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, looks).await.expect("it never was so");
}

fn is_waiting_for_the_pool(status: &LeaseStatus) -> bool {
    matches!(
        status.state,
        LeaseState::Seeking(Waiting::Pool(_)) | LeaseState::Replacing(_, Waiting::Pool(_))
    )
}

#[tokio::test]
async fn renewal_goes_on_by_itself_after_the_store_failed() {
    let (scene, grant) = KeeperFixture::held(0).await;
    scene.store.mood().fails = true;
    let failed = scene.status(|status| status.state == LeaseState::Unrenewed).await;
    assert!(failed.trouble.is_some());
    scene.store.mood().fails = false;
    let renewed = scene.status(|status| status.renewals > failed.renewals + 1).await;
    assert_eq!((renewed.state, renewed.trouble, renewed.losses), (LeaseState::Held, None, 0));
    assert_eq!(renewed.grant.unwrap().token, grant.token);
    assert_eq!(scene.opened(), [grant]);
    assert!(!scene.events().contains(&Event::Close));
}

#[tokio::test]
async fn a_tenure_whose_reply_was_lost_is_not_used_once_it_is_anothers() {
    let scene = KeeperFixture::start(0, |store| store.mood().loses_acquire = true);
    until(async || scene.store.mood().fails).await;
    let lost = scene.entry(0).await;
    let other = scene.take_over(0).await;
    scene.store.mood().fails = false;
    scene.status(is_waiting_for_the_pool).await;
    assert_eq!(scene.opened(), [], "worker 0 is another's");
    scene.memory.release(&other, other.floor).await.unwrap();
    let grant = scene.status(|status| status.state == LeaseState::Held).await.grant.unwrap();
    assert!(grant.token > other.token);
    let Found::Known(record) = lost.found else { panic!("{lost:?}") };
    assert!(grant.floor >= record.horizon, "all that was promised before stays unused");
}

#[tokio::test]
async fn a_tenure_whose_reply_was_lost_is_found_again() {
    let scene = KeeperFixture::start(0, |store| store.mood().loses_acquire = true);
    until(async || scene.store.mood().fails).await;
    // Nobody else wanted it when it lapsed.
    scene.memory.expire(&Slot::worker(0));
    scene.store.mood().fails = false;
    let grant = scene.status(|status| status.state == LeaseState::Held).await.grant.unwrap();
    let Found::Known(record) = scene.entry(0).await.found else { panic!("no record") };
    assert_eq!(grant.token, record.token);
}

#[tokio::test]
async fn a_keeper_that_lost_its_worker_always_gets_another_and_tells_the_lane_of_each_loss() {
    let (scene, mut grant) = KeeperFixture::held(3).await;
    for losses in 1..=3 {
        scene.take_over(grant.worker).await;
        let replaced = scene
            .status(|status| status.losses == losses && status.state == LeaseState::Held)
            .await;
        let next = replaced.grant.unwrap();
        assert_ne!(next.worker, grant.worker);
        grant = next;
        // Whoever looks now does not see that one was lost.
        let told = scene.lane.losses();
        assert_eq!(told.len() as u64, losses, "{told:?}");
        assert!(told.iter().all(|loss| loss.word() == "superseded"), "{told:?}");
    }
}

#[tokio::test]
async fn a_keeper_without_a_free_worker_waits_for_one_and_takes_it() {
    let (scene, grant) = KeeperFixture::held(0).await;
    let other = scene.take_over(0).await;
    scene.status(is_waiting_for_the_pool).await;
    scene.memory.release(&other, other.floor).await.unwrap();
    let again = scene.status(|status| status.state == LeaseState::Held).await.grant.unwrap();
    assert!(again.token > other.token && again.floor >= grant.horizon);
}

#[tokio::test]
async fn a_worker_is_swapped_without_a_gap() {
    let (scene, first) = KeeperFixture::held(1).await;
    scene.lane.use_one().expect("the first grant is used");
    scene.take_over(first.worker).await;
    until(async || {
        assert!(scene.lane.use_one().is_some(), "nothing could be used in between");
        scene.opened().len() == 2
    })
    .await;
    scene.lane.use_one().expect("the second grant is used");
    let events = scene.events();
    assert!(!events.contains(&Event::Close), "{events:?}");
    let swapped = events.iter().rfind(|event| matches!(event, Event::Open { .. }));
    assert!(matches!(swapped, Some(Event::Open { overlapped: true, .. })), "{swapped:?}");
    let used = scene.lane.used();
    assert!(used.is_sorted_by_key(|(_, time)| *time));
    assert!(used.iter().all(|(grant, time)| (grant.floor + 1..=grant.horizon).contains(time)));
}

#[tokio::test]
async fn a_keeper_that_is_stuck_uses_nothing_beyond_what_was_acknowledged() {
    let (scene, _) = KeeperFixture::held(0).await;
    scene.store.mood().hangs_in_extend = true;
    until(async || scene.events().last() == Some(&Event::Asked(Act::Extend))).await;
    let horizon = scene.lane.grant().unwrap().horizon;
    until(async || scene.lane.use_one().is_none()).await;
    assert!(unix_ms() + 1 >= horizon, "it stopped before it had to");
    let used = scene.lane.used();
    assert!(used.iter().all(|(_, time)| *time <= horizon));
    assert_eq!(scene.lane.grant().unwrap().horizon, horizon);
    // A request that hangs keeps nobody from leaving.
    let KeeperFixture { keeper, memory, .. } = scene;
    tokio::time::timeout(Duration::from_secs(3), keeper.shutdown()).await.expect("in no time");
    let entries = memory.list(Group::Workers).await.unwrap();
    assert_eq!(entries[0].presence, Presence::Free);
}

#[tokio::test]
async fn a_store_that_hangs_altogether_delays_the_end_by_seconds_only() {
    let (scene, _) = KeeperFixture::held(0).await;
    let hangs =
        moody::Mood { hangs_in_extend: true, hangs_in_release: true, ..*scene.store.mood() };
    *scene.store.mood() = hangs;
    tokio::time::timeout(PATIENCE / 2, scene.keeper.shutdown()).await.expect("after its patience");
    assert!(scene.lane.grant().is_none());
}

#[tokio::test]
async fn a_keeper_that_is_dropped_closes_its_lane_and_releases_its_worker() {
    let (scene, grant) = KeeperFixture::held(0).await;
    scene.lane.use_one().expect("the grant is used");
    let KeeperFixture { keeper, memory, diary, lane, .. } = scene;
    drop(keeper);
    until(async || memory.list(Group::Workers).await.unwrap()[0].presence == Presence::Free).await;
    let entry = memory.list(Group::Workers).await.unwrap().remove(0);
    let Found::Known(record) = entry.found else { panic!("{entry:?}") };
    assert_eq!((record.nonce, record.token), (None, grant.token));
    let last = lane.used().last().unwrap().1;
    assert_eq!(record.horizon, last.max(grant.floor), "what was not used is given back");
    assert_eq!(diary.lock().unwrap()[..].last_chunk(), Some(&[Event::Close, Event::Release]));
}

#[tokio::test]
async fn nothing_is_used_once_the_release_is_sent() {
    let (scene, _) = KeeperFixture::held(0).await;
    scene.status(|status| status.renewals > 0).await;
    let KeeperFixture { keeper, diary, lane, memory, .. } = scene;
    let status = keeper.status();
    keeper.shutdown().await;
    assert_eq!(lane.use_one(), None);
    assert_eq!(status.borrow().state, LeaseState::Released);
    assert_eq!(diary.lock().unwrap()[..].last_chunk(), Some(&[Event::Close, Event::Release]));
    assert_eq!(memory.list(Group::Workers).await.unwrap()[0].presence, Presence::Free);
}

#[tokio::test]
async fn a_wiped_store_is_quarantined_above_all_that_was_promised() {
    let (scene, first) = KeeperFixture::held(0).await;
    scene.memory.wipe();
    let meta = async || scene.memory.meta().await.unwrap();
    until(async || meta().await.is_some()).await;
    let quarantine = meta().await.unwrap().value.quarantine;
    let promised = scene.lane.grant().unwrap().horizon;
    assert!(quarantine >= promised, "{quarantine} is below {promised}");
    // The lane goes on for as long as it may, and then above the quarantine only.
    assert!(scene.lane.use_one().is_some());
    until(async || {
        scene.lane.use_one();
        scene.opened().len() == 2
    })
    .await;
    let second = scene.opened()[1];
    assert!(second.floor >= quarantine && second.token > first.token);
    // The windows of this test are shorter than times may run ahead: the grant is of use later.
    until(async || scene.lane.use_one().is_some()).await;
    for (grant, time) in scene.lane.used() {
        match grant.token == first.token {
            true => assert!(time <= promised, "{time} is beyond {promised}"),
            false => assert!(time > quarantine, "{time} is in the quarantine"),
        }
    }
    assert!(!scene.events().contains(&Event::Close));
}

/// Somebody wipes the store and creates the namespace anew, without a quarantine.
async fn replace_namespace(memory: &MemoryStore) -> Nonce {
    let mut anew = memory.meta().await.unwrap().unwrap().value;
    (anew.incarnation, anew.quarantine) = (Nonce::mint().unwrap(), 0);
    // The keeper may create it first.
    loop {
        memory.wipe();
        if matches!(memory.put_meta(None, &anew).await.unwrap(), Put::Done(_)) {
            return anew.incarnation;
        }
    }
}

#[tokio::test]
async fn two_wipes_in_a_row_are_both_quarantined_up_to_what_was_granted() {
    // The grant outlasts the test.
    let (ttl, budget) = (Duration::from_secs(40), Duration::from_secs(120));
    let memory = MemoryStore::new();
    let setup = setup("keeper", 0, TIMING.with_ttl(ttl).with_outage_budget(budget));
    let lane = TestLane::new(Diary::default());
    let keeper = Keeper::start(Arc::new(memory.clone()), lane, setup).unwrap();
    let mut statuses = keeper.status();
    let is_held = |status: &LeaseStatus| status.state == LeaseState::Held;
    tokio::time::timeout(PATIENCE, statuses.wait_for(is_held)).await.unwrap().unwrap();
    for wipes in 1..=2 {
        let incarnation = replace_namespace(&memory).await;
        let promised = || keeper.status().borrow().grant.unwrap().horizon;
        until(async || {
            let meta = memory.meta().await.unwrap().unwrap().value;
            assert_eq!(meta.incarnation, incarnation, "it is the same namespace");
            meta.quarantine >= promised()
        })
        .await;
        let status = keeper.status().borrow().clone();
        assert_eq!(status.losses, 1, "after {wipes} wipes");
    }
    assert!(!is_held(&keeper.status().borrow()), "it was between workers all the time");
}

#[tokio::test]
async fn a_clock_that_is_ahead_of_most_others_stops_where_it_was_when_they_were_seen() {
    const AHEAD_MS: u64 = 3_600_000;
    // Nobody lapses on a busy machine.
    let (ttl, budget) = (Duration::from_secs(10), Duration::from_secs(30));
    let timing = TIMING.with_ttl(ttl).with_outage_budget(budget);
    let memory = Arc::new(MemoryStore::new());
    let start = |lane: Arc<TestLane>, holder: &str| {
        Keeper::start(memory.clone(), lane, setup(holder, 7, timing)).unwrap()
    };
    let others: Vec<Keeper> =
        (0..3).map(|_| start(TestLane::new(Diary::default()), "other")).collect();
    let is_held = |status: &LeaseStatus| status.state == LeaseState::Held;
    for other in &others {
        let mut statuses = other.status();
        tokio::time::timeout(PATIENCE, statuses.wait_for(is_held)).await.unwrap().unwrap();
    }
    // Whoever comes with such a clock takes nothing.
    let newcomer = start(TestLane::ahead_by(AHEAD_MS, Diary::default()), "newcomer");
    let mut statuses = newcomer.status();
    let is_refused = |status: &LeaseStatus| matches!(status.state, LeaseState::Seeking(Waiting::Clock(skew)) if skew.judge == Judge::Peers);
    tokio::time::timeout(PATIENCE, statuses.wait_for(is_refused)).await.unwrap().unwrap();
    assert_eq!(statuses.borrow().grant, None);
    newcomer.shutdown().await;

    let wrong = TestLane::new(Diary::default());
    let keeper = start(wrong.clone(), "wrong");
    let mut statuses = keeper.status();
    // The others are seen by then.
    let is_counted = |status: &LeaseStatus| is_held(status) && status.renewals > 3;
    tokio::time::timeout(PATIENCE, statuses.wait_for(is_counted)).await.unwrap().unwrap();
    wrong.jump(AHEAD_MS);
    let is_distrusted = |status: &LeaseStatus| matches!(status.state, LeaseState::Distrusted(_));
    let seen = tokio::time::timeout(PATIENCE, statuses.wait_for(is_distrusted)).await.unwrap();
    let LeaseState::Distrusted(skew) = seen.unwrap().state else { panic!("not distrusted") };
    assert_eq!(skew.judge, Judge::Peers);
    assert!(skew.ahead_ms.unsigned_abs() <= AHEAD_MS, "{skew:?}");
    let (granted, renewals) = (wrong.grant(), statuses.borrow().renewals);
    let is_renewed = |status: &LeaseStatus| status.renewals > renewals + 2;
    tokio::time::timeout(PATIENCE, statuses.wait_for(is_renewed)).await.unwrap().unwrap();
    assert_eq!(wrong.grant(), granted, "a horizon was raised by a clock that is wrong");
    for other in &others {
        assert_eq!(other.status().borrow().state, LeaseState::Held, "most are right");
    }
}
