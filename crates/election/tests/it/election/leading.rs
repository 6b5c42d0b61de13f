//! Leading, handing over, being watched.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::{Group, Token};
use frazil_election::{LeaderLoss, State};

use crate::stage::{Stage, on_every_store, renewals, settings, soon};

on_every_store! {
    one_leads_and_hands_over_with_a_larger_token,
    a_resignation_is_known_before_it_returns,
    a_leadership_that_is_dropped_is_handed_over,
    a_campaign_that_is_dropped_leaves_nothing_behind,
    many_contend_and_one_leads_at_a_time,
    observers_see_every_leader_and_do_not_contend,
    two_with_the_same_name_are_not_taken_for_each_other,
    leader_information_is_what_the_leader_said,
    a_pace_holds_a_candidate_back,
    a_window_gives_times_that_no_other_leader_has,
}

async fn one_leads_and_hands_over_with_a_larger_token(stage: Stage) {
    let (a, b) = (stage.candidate("a").await, stage.candidate("b").await);
    assert_eq!(*a.state().borrow(), State::Follower);
    let first = soon(a.campaign()).await.unwrap();
    assert!(first.is_leader());
    assert_eq!(*a.state().borrow(), State::Leader { token: first.token() });

    let waiting = tokio::spawn(async move { b.campaign().await });
    first.resign().await.unwrap();
    let second = soon(waiting).await.unwrap().unwrap();
    assert!(second.is_leader());
    let state = a.state().borrow().clone();
    let State::Lost { token, loss: LeaderLoss::Released } = state else { panic!("{state:?}") };
    assert!(second.token() > token);
}

async fn a_resignation_is_known_before_it_returns(stage: Stage) {
    let elections = stage.elections().await;
    let candidate = elections.candidate("job", settings("a")).unwrap();
    let mut last = Token(0);
    for _ in 0..20 {
        let leadership = soon(candidate.campaign()).await.unwrap();
        assert!(leadership.token() > last);
        last = leadership.token();
        let proof = leadership.proof();
        leadership.resign().await.unwrap();
        assert!(!proof.is_leader());
        assert_eq!(proof.loss(), Some(LeaderLoss::Released));
        assert_eq!(elections.leader("job").await.unwrap(), None);
    }
}

async fn a_leadership_that_is_dropped_is_handed_over(stage: Stage) {
    let (a, b) = (stage.candidate("a").await, stage.candidate("b").await);
    let first = soon(a.campaign()).await.unwrap();
    let proof = first.proof();
    drop(first);
    assert!(!proof.is_leader(), "at once, not when the store was told");
    let second = soon(b.campaign()).await.unwrap();
    assert!(second.token() > proof.token());
}

async fn a_campaign_that_is_dropped_leaves_nothing_behind(stage: Stage) {
    let (a, b) = (stage.candidate("a").await, stage.candidate("b").await);
    for round in 0..40 {
        // Dropped at every point of its way.
        let brief = Duration::from_micros(100 * round);
        let elected = tokio::time::timeout(brief, a.campaign()).await;
        drop(elected);
    }
    let leadership = soon(b.campaign()).await.unwrap();
    assert!(leadership.is_leader());
}

async fn many_contend_and_one_leads_at_a_time(stage: Stage) {
    const CANDIDATES: usize = 6;
    const TERMS: usize = 5;
    let leading = Arc::new(std::sync::Mutex::new(None::<Token>));
    let mut tasks = Vec::new();
    for number in 0..CANDIDATES {
        let candidate = stage.candidate(&number.to_string()).await;
        let leading = leading.clone();
        tasks.push(tokio::spawn(async move {
            let mut tokens = Vec::new();
            for _ in 0..TERMS {
                let leadership = candidate.campaign().await.unwrap();
                let token = leadership.token();
                assert_eq!(leading.lock().unwrap().replace(token), None, "two lead at a time");
                tokio::task::yield_now().await;
                assert_eq!(leading.lock().unwrap().take(), Some(token));
                tokens.push(token);
                leadership.resign().await.unwrap();
            }
            tokens
        }));
    }
    let mut tokens = Vec::new();
    for task in tasks {
        tokens.extend(soon(task).await.unwrap());
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), CANDIDATES * TERMS, "a token was given twice");
}

async fn observers_see_every_leader_and_do_not_contend(stage: Stage) {
    let mut observer = stage.elections().await.observe("job").unwrap();
    assert_eq!(soon(observer.changed()).await, None);
    for instance in ["a", "b"] {
        let candidate = stage.candidate(instance).await;
        let leadership = soon(candidate.campaign()).await.unwrap();
        let leader = soon(observer.changed()).await.expect("somebody leads");
        assert_eq!((leader.instance.as_str(), leader.token), (instance, leadership.token()));
        leadership.resign().await.unwrap();
        assert_eq!(soon(observer.changed()).await, None);
    }
}

async fn two_with_the_same_name_are_not_taken_for_each_other(stage: Stage) {
    let (a, b) = (stage.candidate("twin").await, stage.candidate("twin").await);
    let first = soon(a.campaign()).await.unwrap();
    let leader = soon(b.observe().changed()).await.expect("somebody leads");
    assert!(a.is(&leader) && !b.is(&leader), "both are called {}", leader.instance);
    let second = tokio::spawn(async move { b.campaign().await });
    // In which a store that goes by names would mix them up.
    renewals(&stage.elections().await).await;
    assert!(!second.is_finished(), "the second twin leads too");
    assert!(first.is_leader());
    let token = first.token();
    first.resign().await.unwrap();
    assert!(soon(second).await.unwrap().unwrap().token() > token);
}

async fn leader_information_is_what_the_leader_said(stage: Stage) {
    let elections = stage.elections().await;
    let mut settings = settings("me");
    settings.host = "over-there".into();
    settings.metadata.insert("url".into(), "http://127.0.0.1:1".into());
    let candidate = elections.candidate("job", settings).unwrap();
    let leadership = soon(candidate.campaign()).await.unwrap();
    let info = elections.leader("job").await.unwrap().expect("somebody leads");
    assert_eq!((info.name.as_str(), info.instance.as_str()), ("job", "me"));
    assert_eq!((info.host.as_str(), info.pid), ("over-there", std::process::id()));
    assert_eq!((info.token, info.metadata.len()), (leadership.token(), 1));
    assert_eq!(info.metadata["url"], "http://127.0.0.1:1");
    assert!(info.renewed_ms >= info.elected_ms && info.elected_ms > 1_700_000_000_000);
    let all = elections.leaders().await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].leader.as_ref(), Some(&info));
    assert_eq!(elections.leader("nobody").await.unwrap(), None);
}

async fn a_pace_holds_a_candidate_back(stage: Stage) {
    let (slow, quick) = (stage.candidate("slow").await, stage.candidate("quick").await);
    let never = tokio::spawn({
        let slow = slow.clone();
        async move { slow.campaign_paced(Arc::new(|_| None)).await }
    });
    let leadership = soon(quick.campaign()).await.unwrap();
    assert!(!never.is_finished());
    never.abort();
    leadership.resign().await.unwrap();
    let paced = slow.campaign_paced(Arc::new(|_| Some(Duration::from_millis(50))));
    assert!(soon(paced).await.unwrap().is_leader());
}

async fn a_window_gives_times_that_no_other_leader_has(stage: Stage) {
    let elections = stage.elections().await;
    let slot = frazil_coord::Slot::named(Group::Scopes, "orders").unwrap();
    let mut settings = settings("a");
    settings.window = Some(Duration::from_secs(3));
    let candidate = elections.candidate_for(slot, settings).unwrap();
    let first = soon(candidate.campaign()).await.unwrap();
    let (floor, horizon) = (first.floor(), first.horizon());
    assert!(floor < horizon);
    // A second that says what it used starts the next right there; one that does not, at the end.
    let used = floor.max(horizon - 2900);
    first.resign_at(used).await.unwrap();
    let second = soon(candidate.campaign()).await.unwrap();
    assert_eq!(second.floor(), used);
    let end = second.horizon();
    second.resign().await.unwrap();
    let third = soon(candidate.campaign()).await.unwrap();
    assert!(third.floor() >= end && third.horizon() > third.floor());
}
