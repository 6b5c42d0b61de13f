//! Stopping and losing, whatever the callbacks wait for.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_election::{Callbacks, Candidate, Elections, Elector, LeaderLoss, Proof};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::election::callbacks::leads;
use crate::stage::{Stage, on_every_store, settings, soon};

on_every_store! {
    work_that_ends_with_its_proof_can_be_joined_when_stopped,
    work_within_the_callback_ends_when_stopped,
}

/// Work that ends when its leadership does.
type Work = Arc<Mutex<Option<JoinHandle<()>>>>;

/// Callbacks as people write them: one starts the work, the other waits for its end.
fn joining(said: watch::Sender<Option<(bool, LeaderLoss)>>) -> Callbacks {
    let work = Work::default();
    let started = work.clone();
    Callbacks::new()
        .on_elected(move |proof: Proof| {
            let task = tokio::spawn(async move { proof.cancelled().await });
            *started.lock().unwrap() = Some(task);
            std::future::ready(())
        })
        .on_lost(move |proof, loss| {
            let (task, said) = (work.lock().unwrap().take(), said.clone());
            async move {
                task.expect("it was started").await.unwrap();
                said.send_replace(Some((proof.is_leader(), loss)));
            }
        })
}

async fn work_that_ends_with_its_proof_can_be_joined_when_stopped(stage: Stage) {
    let (said, heard) = watch::channel(None);
    let elector = Elector::start(stage.candidate("a").await, joining(said));
    leads(&elector).await;
    soon(elector.stop()).await.unwrap();
    assert_eq!(*heard.borrow(), Some((false, LeaderLoss::Released)));
    assert!(!elector.is_leader() && elector.proof().is_none());
    assert_eq!(stage.elections().await.leader("job").await.unwrap(), None);
}

async fn work_within_the_callback_ends_when_stopped(stage: Stage) {
    let (said, heard) = watch::channel(Vec::new());
    let lost = said.clone();
    let callbacks = Callbacks::new()
        .on_elected(move |proof: Proof| {
            let said = said.clone();
            async move {
                proof.cancelled().await;
                said.send_modify(|said| said.push("ended"));
            }
        })
        .on_lost(move |_, _| {
            lost.send_modify(|said| said.push("lost"));
            std::future::ready(())
        });
    let elector = Elector::start(stage.candidate("a").await, callbacks);
    leads(&elector).await;
    soon(elector.stop()).await.unwrap();
    assert_eq!(*heard.borrow(), ["ended", "lost"]);
}

/// A candidate, and its store to hurt.
fn in_memory() -> (Candidate, MemoryStore) {
    let store = MemoryStore::new();
    let elections = Elections::new(Arc::new(store.clone()));
    (elections.candidate("job", settings("a")).unwrap(), store)
}

#[tokio::test]
async fn work_that_ends_with_its_proof_can_be_joined_when_lost() {
    let (candidate, store) = in_memory();
    let (said, mut heard) = watch::channel(None);
    let elector = Elector::start(candidate, joining(said));
    leads(&elector).await;
    store.wipe();
    let wanted = Some((false, LeaderLoss::StoreLost));
    soon(heard.wait_for(|heard| *heard == wanted)).await.unwrap();
    // It goes on.
    leads(&elector).await;
    soon(elector.stop()).await.unwrap();
}

#[tokio::test]
async fn a_callback_that_never_returns_is_dropped_after_its_limit() {
    for hangs_when_elected in [true, false] {
        let (candidate, _store) = in_memory();
        let other = candidate.clone();
        let hang = move |hangs: bool| async move {
            if hangs {
                pending::<()>().await;
            }
        };
        let callbacks = Callbacks::new()
            .on_elected(move |_| hang(hangs_when_elected))
            .on_lost(move |_, _| hang(!hangs_when_elected))
            .drain_limit(Duration::from_millis(50));
        let elector = Elector::start(candidate, callbacks);
        leads(&elector).await;
        soon(elector.stop()).await.unwrap();
        assert!(soon(other.campaign()).await.unwrap().is_leader());
    }
}

#[tokio::test]
async fn a_callback_may_stop_its_own_elector_and_wait_for_that() {
    let (candidate, _store) = in_memory();
    let elector = Elector::start(candidate, Callbacks::new());
    let (told, heard) = oneshot::channel();
    let (own, mut told) = (elector.clone(), Some(told));
    elector.on_elected(move |_| {
        let (own, told) = (own.clone(), told.take().expect("once"));
        async move {
            own.stop().await.unwrap();
            told.send(()).unwrap();
        }
    });
    soon(heard).await.unwrap();
    soon(elector.stop()).await.unwrap();
    assert!(!elector.is_leader());
}

#[tokio::test]
async fn a_callback_that_waits_for_somebody_who_stops_its_elector_is_dropped() {
    let (candidate, _store) = in_memory();
    let limit = Callbacks::new().drain_limit(Duration::from_millis(50));
    let elector = Elector::start(candidate, limit);
    let own = elector.clone();
    elector.on_lost(move |_, _| {
        let own = own.clone();
        async move {
            // Not in the callback itself, where it would not be waited for.
            let stopping = tokio::spawn(async move { own.stop().await });
            stopping.await.unwrap().unwrap();
        }
    });
    leads(&elector).await;
    soon(elector.stop()).await.unwrap();
}

#[tokio::test]
async fn any_clone_stops_it_and_all_wait_for_the_end() {
    let (candidate, _store) = in_memory();
    let other = candidate.clone();
    let elector = Elector::start(candidate, Callbacks::new());
    leads(&elector).await;
    let clone = elector.clone();
    let (first, second) = soon(async { tokio::join!(clone.stop(), elector.stop()) }).await;
    first.unwrap();
    second.unwrap();
    soon(elector.stop()).await.unwrap();
    assert!(soon(other.campaign()).await.unwrap().is_leader());
}

#[tokio::test]
async fn the_last_clone_that_is_dropped_resigns() {
    let (candidate, _store) = in_memory();
    let other = candidate.clone();
    let elector = Elector::start(candidate, Callbacks::new());
    leads(&elector).await;
    let clone = elector.clone();
    drop(elector);
    assert!(clone.is_leader());
    drop(clone);
    assert!(soon(other.campaign()).await.unwrap().is_leader());
}
