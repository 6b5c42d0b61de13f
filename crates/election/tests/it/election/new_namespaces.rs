//! Namespaces that leaders of scopes create, and what they go on from after the store forgot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_coord::internal::Leasing;
use frazil_coord::internal::rules::{RUN_AHEAD_MS, SILENCE_MS};
use frazil_coord::{Act, FirstUse, Group, Meta, Metered, Outcome, Slot, UnixMs};
use frazil_election::{Candidate, Clock, Elections, Forgotten, LeaderLoss, Settings};

use crate::stage::{settings, soon};

const START: UnixMs = 1_700_000_000_000;
const WINDOW: Duration = Duration::from_secs(2);

/// A clock that stands still until it is set.
#[derive(Clone, Debug)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn at(time: UnixMs) -> Self {
        Self(Arc::new(AtomicU64::new(time)))
    }

    fn set(&self, time: UnixMs) {
        self.0.store(time, Ordering::SeqCst);
    }

    fn settings(&self, instance: &str) -> Settings {
        let hands = self.clone();
        let clock = Clock::new(move || hands.0.load(Ordering::SeqCst));
        let retry = Duration::from_millis(20);
        settings(instance).with_window(Some(WINDOW)).with_clock(clock).with_retry(retry)
    }
}

/// A candidate of the scope, in another process as far as it knows.
fn candidate(store: &MemoryStore, hands: &Hands, instance: &str) -> Candidate {
    let elections = Elections::new(Arc::new(store.clone()));
    let slot = Slot::named(Group::Scopes, "orders").unwrap();
    elections.candidate_for(slot, hands.settings(instance)).unwrap()
}

/// Meta, once it is as it should be.
async fn meta_when(store: &MemoryStore, is_so: impl Fn(&Meta) -> bool) -> Meta {
    let meta = async {
        loop {
            match store.meta().await.unwrap() {
                Some(meta) if is_so(&meta.value) => return meta.value,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    soon(meta).await
}

#[tokio::test]
async fn a_scope_is_led_once_those_who_were_forgotten_had_time_to_say_so() {
    let (store, hands) = (MemoryStore::new(), Hands::at(START));
    let metered = Arc::new(Metered::new(Arc::new(store.clone())));
    let slot = Slot::named(Group::Scopes, "orders").unwrap();
    let waiting = Elections::new(metered.clone()).candidate_for(slot, hands.settings("first"));
    let waiting = waiting.unwrap();
    let waiting = tokio::spawn(async move { waiting.campaign().await });
    let meta = meta_when(&store, |_| true).await;
    assert!(meta.is_blank());
    assert_eq!((meta.quarantine, meta.created), (START + SILENCE_MS, START));
    // One who uses no times does not wait.
    let plain = Elections::new(Arc::new(store.clone())).candidate("job", settings("plain"));
    soon(plain.unwrap().campaign()).await.unwrap().resign().await.unwrap();
    hands.set(meta.quarantine - RUN_AHEAD_MS - 1);
    let reads = || metered.operations(Act::Read, Outcome::Done).count;
    let before = reads();
    // It has looked by the clock as it is now, and claimed if it could.
    soon(async {
        while reads() < before + 6 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!waiting.is_finished());
    hands.set(meta.quarantine - RUN_AHEAD_MS);
    let leadership = soon(waiting).await.unwrap().unwrap();
    assert_eq!(leadership.floor(), meta.quarantine);
}

#[tokio::test]
async fn a_scope_of_a_namespace_that_is_known_to_be_new_is_led_at_once() {
    let elections = Elections::new(Arc::new(MemoryStore::new())).first_use(FirstUse::AtOnce);
    let slot = Slot::named(Group::Scopes, "orders").unwrap();
    let settings = Hands::at(START).settings("first");
    let leadership = soon(elections.candidate_for(slot, settings).unwrap().campaign()).await;
    let leadership = leadership.unwrap();
    assert_eq!((leadership.floor(), leadership.horizon()), (0, START + 2000));
}

/// Its clock is ahead of everybody's, so that what newcomers wait for does not cover it.
#[tokio::test]
async fn a_leader_that_the_store_forgot_says_up_to_when_it_used_times() {
    let (store, far) = (MemoryStore::new(), Hands::at(START));
    let before = Elections::new(Arc::new(store.clone())).first_use(FirstUse::AtOnce);
    let slot = Slot::named(Group::Scopes, "orders").unwrap();
    let before = before.candidate_for(slot, far.settings("before")).unwrap();
    let leadership = soon(before.campaign()).await.unwrap();
    far.set(START + 60_000);
    soon(async {
        while leadership.horizon() < START + 62_000 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    store.wipe();
    let near = Hands::at(START);
    let after = candidate(&store, &near, "after");
    let after = tokio::spawn(async move { after.campaign().await });
    let meta = meta_when(&store, |meta| meta.quarantine >= START + 62_000).await;
    soon(leadership.cancelled()).await;
    assert_eq!(leadership.loss(), Some(LeaderLoss::StoreLost));
    near.set(meta.quarantine);
    let after = soon(after).await.unwrap().unwrap();
    assert!(after.floor() >= START + 62_000, "{} is below the horizon before", after.floor());
}

/// A clock that is not believed moves no horizon.
#[tokio::test]
async fn horizons_follow_the_clock_that_is_given() {
    let (store, hands) = (MemoryStore::new(), Hands::at(START));
    let elections = Elections::new(Arc::new(store)).first_use(FirstUse::AtOnce);
    let slot = Slot::named(Group::Scopes, "orders").unwrap();
    let candidate = elections.candidate_for(slot.clone(), hands.settings("one")).unwrap();
    let leadership = soon(candidate.campaign()).await.unwrap();
    assert_eq!(leadership.token().0, START);
    hands.set(START + 500);
    soon(async {
        while leadership.horizon() == START + 2000 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(leadership.horizon(), START + 2500);
}

/// However many others there are: they are not even listed.
#[tokio::test]
async fn an_election_looks_at_its_own_slot_alone() {
    let store = Arc::new(Metered::new(Arc::new(MemoryStore::new())));
    let elections = Elections::new(store.clone());
    let mut observer = elections.observe("job").unwrap();
    for instance in ["one", "two"] {
        let candidate = elections.candidate("job", settings(instance)).unwrap();
        let leadership = soon(candidate.campaign()).await.unwrap();
        let told = async {
            while observer.changed().await.is_none_or(|leader| leader.instance != instance) {}
        };
        soon(told).await;
        assert!(observer.view().borrow().entries.contains_key("job"));
        assert_eq!(elections.leader("job").await.unwrap().unwrap().instance, instance);
        leadership.resign().await.unwrap();
    }
    assert_eq!(store.operations(Act::List, Outcome::Done).count, 0);
    assert_eq!(store.operations(Act::Watch, Outcome::Done).count, 1);
}

#[tokio::test]
async fn an_election_that_is_over_can_be_forgotten() {
    let elections = Elections::new(Arc::new(MemoryStore::new()));
    let hands = Hands::at(START);
    let settings = hands.settings("one").with_window(None);
    let candidate = elections.candidate("job", settings).unwrap();
    let leadership = soon(candidate.campaign()).await.unwrap();
    assert_eq!(elections.forget("job").await.unwrap(), Forgotten::Held);
    leadership.resign().await.unwrap();
    assert_eq!(elections.forget("job").await.unwrap(), Forgotten::Done);
    assert_eq!(elections.forget("job").await.unwrap(), Forgotten::Unknown);
    assert!(elections.leaders().await.unwrap().is_empty());
    // What was started a moment ago may still run.
    hands.set(frazil_coord::internal::time::unix_ms());
    soon(candidate.campaign()).await.unwrap().resign().await.unwrap();
    let forgotten = elections.forget("job").await.unwrap();
    let Forgotten::Recent { wait } = forgotten else { panic!("{forgotten:?}") };
    assert!((Duration::from_secs(15)..=Duration::from_secs(20)).contains(&wait), "{wait:?}");
    assert_eq!(elections.leaders().await.unwrap().len(), 1);
}

/// Within one millisecond, and with a clock that went back by a year.
#[tokio::test]
async fn the_token_of_an_election_that_was_forgotten_does_not_return() {
    let elections = Elections::new(Arc::new(MemoryStore::new()));
    let hands = Hands::at(START);
    let settings = hands.settings("one").with_window(None);
    let candidate = elections.candidate("job", settings).unwrap();
    let mut last = None;
    for back in [0, 0, 1, 365 * 86_400_000] {
        hands.set(START - back);
        let leadership = soon(candidate.campaign()).await.unwrap();
        let token = leadership.token();
        assert!(Some(token) > last, "{token} came after {last:?}, {back} ms back");
        last = Some(token);
        leadership.resign().await.unwrap();
        assert_eq!(elections.forget("job").await.unwrap(), Forgotten::Done);
    }
}
