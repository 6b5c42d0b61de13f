//! Work that runs while its process leads.

use std::sync::Arc;

use frazil_coord::MemoryStore;
use frazil_election::{Elections, run, run_until};
use tokio::sync::{oneshot, watch};

use crate::stage::{Stage, on_every_store, renewals, settings, soon};

on_every_store! {
    the_next_leader_starts_after_the_work_has_ended,
    work_that_returns_ends_the_run,
}

async fn the_next_leader_starts_after_the_work_has_ended(stage: Stage) {
    let (a, b) = (stage.candidate("a").await, stage.candidate("b").await);
    let (stop, stopped) = oneshot::channel::<()>();
    let (finish, finished) = oneshot::channel::<()>();
    let (began, mut begun) = watch::channel("");
    let mut finished = Some(finished);
    let running = tokio::spawn(async move {
        let stopped = async { stopped.await.unwrap() };
        run_until(&a, stopped, |proof| {
            let (finished, began) = (finished.take().expect("once"), began.clone());
            async move {
                began.send_replace("leads");
                proof.cancelled().await;
                began.send_replace("cancelled");
                finished.await.unwrap();
                proof.token()
            }
        })
        .await
    });
    soon(begun.wait_for(|word| *word == "leads")).await.unwrap();
    let waiting = tokio::spawn(async move { b.campaign().await });
    stop.send(()).unwrap();
    soon(begun.wait_for(|word| *word == "cancelled")).await.unwrap();
    // What is left of the work is kept apart from the next leader's.
    renewals(&stage.elections().await).await;
    assert!(!waiting.is_finished(), "somebody else leads while the work goes on");
    finish.send(()).unwrap();
    let token = soon(running).await.unwrap().unwrap().expect("it led");
    assert!(soon(waiting).await.unwrap().unwrap().token() > token);
}

async fn work_that_returns_ends_the_run(stage: Stage) {
    let candidate = stage.candidate("a").await;
    let done = soon(run(&candidate, |proof| async move { proof.is_leader() })).await.unwrap();
    assert!(done);
    assert_eq!(stage.elections().await.leader("job").await.unwrap(), None);
}

#[tokio::test]
async fn work_is_run_again_after_a_loss() {
    let store = MemoryStore::new();
    let elections = Elections::new(Arc::new(store.clone()));
    let candidate = elections.candidate("job", settings("a")).unwrap();
    let (mut round, mut tokens) = (0, Vec::new());
    let rounds = run(&candidate, |proof| {
        round += 1;
        tokens.push(proof.token());
        let (round, store) = (round, store.clone());
        async move {
            if round < 3 {
                store.wipe();
                proof.cancelled().await;
            }
            round
        }
    });
    assert_eq!(soon(rounds).await.unwrap(), 3);
    assert!(tokens.is_sorted_by(|one, next| one < next), "after a wipe too: {tokens:?}");
}

#[tokio::test]
async fn what_is_stopped_before_it_leads_runs_nothing() {
    let elections = Elections::new(Arc::new(MemoryStore::new()));
    let leader = elections.candidate("job", settings("a")).unwrap();
    let _leads = soon(leader.campaign()).await.unwrap();
    let candidate = elections.candidate("job", settings("b")).unwrap();
    let ran = run_until(&candidate, tokio::task::yield_now(), |_| async { panic!("it led") });
    assert_eq!(soon(ran).await.unwrap(), None::<()>);
}
