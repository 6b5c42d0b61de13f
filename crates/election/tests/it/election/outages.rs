//! The store is away: for less than a leader's time, and for more.

use std::sync::Arc;
use std::time::Duration;

use frazil_conformance::{Chances, Faulty};
use frazil_coord::MemoryStore;
use frazil_coord::Store;
use frazil_coord::{Group, Slot};
use frazil_election::{Elections, LeaderLoss, State};

use crate::stage::{Client, Kind, Stage, on_every_store, settings, soon};

on_every_store! { servers:
    a_store_that_is_away_for_a_moment_costs_nothing_but_jeopardy,
    a_store_that_is_away_for_too_long_ends_the_leadership_by_itself,
    a_leader_that_was_cut_off_comes_back_with_a_larger_token_or_not_at_all,
}

/// Cuts the way to the store.
fn cut(client: &Client) -> &frazil_rig::Proxy {
    let proxy = client.proxy.as_ref().expect("a server");
    proxy.black_hole();
    proxy
}

async fn a_store_that_is_away_for_a_moment_costs_nothing_but_jeopardy(stage: Stage) {
    // Longer than a busy machine takes to connect again.
    let mut settings = settings("a");
    settings.ttl = Duration::from_secs(20);
    let client = stage.client(settings.ttl).await;
    let candidate = client.elections.candidate("job", settings).unwrap();
    let leadership = soon(candidate.campaign()).await.unwrap();
    let proxy = cut(&client);
    let mut state = candidate.state();
    let token = leadership.token();
    soon(state.wait_for(|state| *state == State::Jeopardy { token })).await.unwrap();
    assert!(leadership.is_leader(), "a renewal that fails is no loss");
    assert!(leadership.ensure(Duration::from_secs(20)).is_err(), "it may end sooner than that");
    proxy.heal();
    soon(state.wait_for(|state| *state == State::Leader { token })).await.unwrap();
    assert!(leadership.is_leader());
}

async fn a_store_that_is_away_for_too_long_ends_the_leadership_by_itself(stage: Stage) {
    let client = stage.client(settings("a").ttl).await;
    let candidate = client.elections.candidate("job", settings("a")).unwrap();
    let leadership = soon(candidate.campaign()).await.unwrap();
    cut(&client);
    let margin = Duration::from_millis(600);
    soon(leadership.expiring(margin)).await;
    assert!(leadership.is_leader(), "it is told before the end");
    assert!(leadership.remaining().unwrap() <= margin);
    soon(leadership.cancelled()).await;
    assert!(!leadership.is_leader());
    assert_eq!(leadership.loss(), Some(LeaderLoss::Expired));
    // Only now, and never before, somebody else leads.
    let other = soon(stage.candidate("b").await.campaign()).await.unwrap();
    assert!(other.token() > leadership.token());
    assert!(!leadership.is_leader());
}

async fn a_leader_that_was_cut_off_comes_back_with_a_larger_token_or_not_at_all(stage: Stage) {
    let client = stage.client(settings("a").ttl).await;
    let candidate = client.elections.candidate("job", settings("a")).unwrap();
    let leadership = soon(candidate.campaign()).await.unwrap();
    let token = leadership.token();
    let proxy = cut(&client);
    soon(leadership.cancelled()).await;
    let again = tokio::spawn({
        let candidate = candidate.clone();
        async move { candidate.campaign().await }
    });
    proxy.heal();
    let again = soon(again).await.unwrap().unwrap();
    assert!(again.is_leader() && again.token() > token, "an old token would pass the fence");
    assert!(!leadership.is_leader());
    assert_eq!(leadership.loss(), Some(LeaderLoss::Expired));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_kernel_keeps_the_lock_no_time_ends_a_leadership() {
    for (kind, is_endless) in [(Kind::File, true), (Kind::Memory, false)] {
        let stage = Stage::new(kind);
        let leadership = soon(stage.candidate("a").await.campaign()).await.unwrap();
        assert_eq!(leadership.remaining().is_none(), is_endless, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_waits_for_the_lock_delay_only_after_an_unclean_loss() {
    let memory = MemoryStore::new();
    let elections = Elections::new(Arc::new(memory.clone()));
    let mut patient = settings("b");
    patient.lock_delay = Duration::from_secs(2);
    let candidate = elections.candidate("job", patient).unwrap();
    let a = elections.candidate("job", settings("a")).unwrap();
    let clean = soon(a.campaign()).await.unwrap();
    clean.resign().await.unwrap();
    let resigned = tokio::time::timeout(Duration::from_secs(1), candidate.campaign()).await;
    resigned.expect("nobody waits after a resignation").unwrap().resign().await.unwrap();

    let leadership = soon(a.campaign()).await.unwrap();
    // Gone without a word: its renewals are told that it lapsed.
    let slot = Slot::named(Group::Elections, "job").unwrap();
    let mut waiting = tokio::spawn(async move { candidate.campaign().await });
    memory.lose(&slot);
    soon(leadership.cancelled()).await;
    assert_eq!(leadership.loss(), Some(LeaderLoss::StoreLost));
    let early = tokio::time::timeout(Duration::from_millis(500), &mut waiting).await;
    assert!(early.is_err(), "the lock delay was not waited for");
    assert!(soon(waiting).await.unwrap().unwrap().is_leader());
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_requests_and_answers_never_make_two_leaders() {
    let memory = MemoryStore::new();
    let led = Arc::new(std::sync::Mutex::new((0_u64, 0_u32)));
    let mut tasks = Vec::new();
    for seed in 0..4 {
        let chances = Chances { request_lost: 100, reply_lost: 100, twice: 50, late: 30 };
        let store: Arc<dyn Store> = Arc::new(Faulty::new(Arc::new(memory.clone()), chances, seed));
        let elections = Elections::new(store);
        let candidate = elections.candidate("job", settings(&seed.to_string())).unwrap();
        let led = led.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                let leadership = candidate.campaign().await.unwrap();
                {
                    let mut led = led.lock().unwrap();
                    assert!(leadership.token().0 > led.0, "tokens must rise");
                    assert_eq!(led.1, 0, "two lead at a time");
                    *led = (leadership.token().0, 1);
                }
                tokio::task::yield_now().await;
                led.lock().unwrap().1 = 0;
                // The store may not hear of it at first.
                let _ = leadership.resign().await;
            }
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
}
