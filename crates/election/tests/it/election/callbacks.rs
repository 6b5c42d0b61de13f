//! The elector: callbacks in order, one at a time, and what becomes of one that panics.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frazil_election::{Callbacks, Elector, LeaderLoss};

use crate::stage::{Stage, on_every_store, renewals, settings, soon};

on_every_store! {
    callbacks_come_in_order_and_one_at_a_time,
    a_callback_that_panics_resigns,
    whoever_stops_hands_over_after_its_last_callback,
}

type Diary = Arc<Mutex<Vec<String>>>;

fn written(diary: &Diary) -> Vec<String> {
    diary.lock().unwrap().clone()
}

/// Callbacks that write down when they begin and end, and yield in between.
fn recording_callbacks(diary: &Diary) -> Callbacks {
    let within = Arc::new(AtomicUsize::new(0));
    let note = {
        let diary = diary.clone();
        move |what: String| {
            let (diary, within) = (diary.clone(), within.clone());
            async move {
                assert_eq!(within.fetch_add(1, Ordering::SeqCst), 0, "{what} comes in between");
                tokio::task::yield_now().await;
                diary.lock().unwrap().push(what);
                within.fetch_sub(1, Ordering::SeqCst);
            }
        }
    };
    let (elected, lost, changed) = (note.clone(), note.clone(), note);
    Callbacks::new()
        .on_elected(move |proof| elected(format!("elected {}", proof.token())))
        .on_lost(move |proof, loss| lost(format!("lost {} {}", proof.token(), loss.word())))
        .on_leader_changed(move |leader| {
            changed(format!("changed {}", leader.map_or("nobody".into(), |l| l.instance)))
        })
}

/// Waits until it leads and its callbacks were called: what ends before that is not told of.
pub(crate) async fn leads(elector: &Elector) {
    let called = Arc::new(tokio::sync::Notify::new());
    let call = called.clone();
    elector.on_elected(move |_| {
        call.notify_one();
        std::future::ready(())
    });
    soon(called.notified()).await;
    assert!(elector.is_leader(), "it was called, and does not lead");
}

async fn callbacks_come_in_order_and_one_at_a_time(stage: Stage) {
    let (diary_a, diary_b) = (Diary::default(), Diary::default());
    let a = Elector::start(stage.candidate("a").await, recording_callbacks(&diary_a));
    let mut leader = a.leader();
    soon(leader.wait_for(|l| l.as_ref().is_some_and(|l| l.instance == "a"))).await.unwrap();
    leads(&a).await;
    assert_eq!(a.instance(), "a");
    let b = Elector::start(stage.candidate("b").await, recording_callbacks(&diary_b));
    let mut seen = b.leader();
    soon(seen.wait_for(|l| l.as_ref().is_some_and(|l| l.instance == "a"))).await.unwrap();
    assert!(!b.is_leader() && b.proof().is_none());
    let first = a.proof().expect("it leads").token();
    a.stop().await.unwrap();
    soon(seen.wait_for(|l| l.as_ref().is_some_and(|l| l.instance == "b"))).await.unwrap();
    leads(&b).await;
    let second = b.proof().expect("it leads").token();
    b.stop().await.unwrap();

    let a = written(&diary_a);
    let led: Vec<_> = a.iter().filter(|line| !line.starts_with("changed")).collect();
    assert_eq!(led, [&format!("elected {first}"), &format!("lost {first} released")]);
    assert!(a.contains(&"changed a".to_owned()), "{a:?}");
    let b = written(&diary_b);
    let led: Vec<_> = b.iter().filter(|line| !line.starts_with("changed")).collect();
    assert_eq!(led, [&format!("elected {second}"), &format!("lost {second} released")]);
    assert!(second > first);
}

async fn a_callback_that_panics_resigns(stage: Stage) {
    let mut patient = settings("panics");
    // Long enough for the other to be elected first.
    patient.retry = Duration::from_secs(30);
    let candidate = stage.elections().await.candidate("job", patient).unwrap();
    let (tell, mut told) = tokio::sync::watch::channel(None);
    let callbacks = Callbacks::new()
        .on_elected(|proof| async move { panic!("at token {}", proof.token()) })
        .on_lost(move |proof, loss| {
            tell.send_replace(Some((proof.token(), loss)));
            std::future::ready(())
        });
    let elector = Elector::start(candidate, callbacks);
    let (token, loss) = soon(told.wait_for(Option::is_some)).await.unwrap().clone().unwrap();
    assert_eq!(loss, LeaderLoss::Released);
    let leadership = soon(stage.candidate("other").await.campaign()).await.unwrap();
    assert!(leadership.token() > token);
    elector.stop().await.unwrap();
}

async fn whoever_stops_hands_over_after_its_last_callback(stage: Stage) {
    let (begin, begun) = tokio::sync::oneshot::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let mut hooks = Some((begin, ended));
    let callbacks = Callbacks::new().on_lost(move |_, _| {
        let hooks = hooks.take();
        async move {
            let (begin, ended) = hooks.expect("once");
            begin.send(()).unwrap();
            ended.await.unwrap();
        }
    });
    let elector = Elector::start(stage.candidate("a").await, callbacks);
    leads(&elector).await;
    let candidate = stage.candidate("b").await;
    let waiting = tokio::spawn(async move { candidate.campaign().await });
    let stopping = tokio::spawn(async move { elector.stop().await });
    soon(begun).await.unwrap();
    // The work is still being stopped.
    renewals(&stage.elections().await).await;
    assert!(!waiting.is_finished(), "the successor did not wait");
    end.send(()).unwrap();
    soon(stopping).await.unwrap().unwrap();
    soon(waiting).await.unwrap().unwrap();
}
