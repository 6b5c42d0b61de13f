//! Jobs that fail, panic, return, hang and block.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use frazil_election::processor::{JobState, Processor, Restart, Run, Step, StopReason, WhenDone};
use tokio::sync::{Notify, watch};

use crate::processor::crew::{event, leads, names, node, until, with_jobs, within};
use crate::processor::journal::Journal;
use crate::stage::{Kind, PATIENCE, Stage, on_every_store};

on_every_store! {
    an_error_of_one_job_stops_no_other,
}

/// Adds a job that counts its starts and then does as it is told.
fn counting(
    processor: Processor,
    starts: &Arc<AtomicU32>,
    then: impl Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static,
) -> Processor {
    let starts = starts.clone();
    processor.job("odd", move |_| {
        starts.fetch_add(1, Ordering::SeqCst);
        let then = then.clone();
        async move { Ok(then()?) }
    })
}

async fn an_error_of_one_job_stops_no_other(stage: Stage) {
    let (journal, starts) = (Journal::default(), Arc::<AtomicU32>::default());
    let processor = with_jobs(node(stage.elections().await, "a"), &journal, "a", &names(3));
    let running = counting(processor, &starts, || Err("out of luck")).start().unwrap();
    leads(&running, 4).await;
    until("some restarts", || starts.load(Ordering::SeqCst) > 3).await;
    let status = running.status().borrow().job("odd").cloned().unwrap();
    assert_eq!(status.last_error.as_deref(), Some("out of luck"));
    assert!(status.restarts >= 3);
    assert_eq!(journal.spans().len(), 3, "others were started once");
    assert_eq!(journal.running().len(), 3, "and run");
    assert!(running.stop().await.unfinished.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_an_error_of_one_job() {
    let stage = Stage::new(Kind::Memory);
    let (journal, starts) = (Journal::default(), Arc::<AtomicU32>::default());
    let processor = with_jobs(node(stage.elections().await, "a"), &journal, "a", &names(2));
    let running = counting(processor, &starts, || panic!("no reason")).start().unwrap();
    until("some restarts", || starts.load(Ordering::SeqCst) > 2).await;
    let status = running.status().borrow().job("odd").cloned().unwrap();
    assert_eq!(status.last_error.as_deref(), Some("it panicked: no reason"));
    assert_eq!(journal.running().len(), 2);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_calls_its_cancellation_an_error_has_not_failed() {
    let stage = Stage::new(Kind::Memory);
    let running = node(stage.elections().await, "a")
        .job("odd", |run: Run| async move {
            run.cancelled().await;
            Err("cancelled".into())
        })
        .start()
        .unwrap();
    leads(&running, 1).await;
    let (mut events, status) = (running.events(), running.status());
    assert!(running.stop().await.unfinished.is_empty());
    event(&mut events, "odd", |step| *step == Step::Released).await;
    let status = status.borrow().job("odd").cloned().unwrap();
    assert_eq!((status.last_error, status.restarts), (None, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_returned_is_done_and_is_not_done_again_elsewhere() {
    let stage = Stage::new(Kind::Memory);
    let starts = Arc::<AtomicU32>::default();
    let journal = Journal::default();
    let on = |processor, name: &str| {
        counting(with_jobs(processor, &journal, name, &names(1)), &starts, || Ok(()))
    };
    let first = on(node(stage.elections().await, "a"), "a").start().unwrap();
    let is_done = |status: &frazil_election::processor::Status| {
        status.job("odd").unwrap().state == JobState::Done
    };
    let mut status = first.status();
    tokio::time::timeout(PATIENCE, status.wait_for(is_done)).await.unwrap().unwrap();
    leads(&first, 2).await;
    let second = on(node(stage.elections().await, "b"), "b").start().unwrap();
    assert!(!within(Duration::from_millis(500), || starts.load(Ordering::SeqCst) > 1).await);
    assert_eq!(journal.running().len(), 1, "the other job runs");
    // Whoever leads next does it again.
    first.stop().await;
    until("the next to do it", || starts.load(Ordering::SeqCst) == 2).await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_returned_can_be_released_or_run_again() {
    let stage = Stage::new(Kind::Memory);
    let starts = Arc::<AtomicU32>::default();
    let again = node(stage.elections().await, "a").when_done(WhenDone::Again(Duration::ZERO));
    let running = counting(again, &starts, || Ok(())).start().unwrap();
    until("some runs", || starts.load(Ordering::SeqCst) > 5).await;
    let token = running.status().borrow().job("odd").unwrap().token;
    let runs = starts.load(Ordering::SeqCst);
    until("more runs", || starts.load(Ordering::SeqCst) > runs + 5).await;
    assert_eq!(running.status().borrow().job("odd").unwrap().token, token, "one leadership");
    running.stop().await;

    let (first, second) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let mut nodes = Vec::new();
    for (name, starts) in [("a", &first), ("b", &second)] {
        let released = node(stage.elections().await, name).when_done(WhenDone::Release);
        nodes.push(counting(released, starts, || Ok(())).start().unwrap());
    }
    let once = || first.load(Ordering::SeqCst) == 1 && second.load(Ordering::SeqCst) == 1;
    until("each to do it", once).await;
    assert!(!within(Duration::from_millis(500), || !once()).await, "once each");
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_for_ever_here_is_left_to_another_node() {
    let stage = Stage::new(Kind::Memory);
    let restart = Restart::default()
        .with_tries(2)
        .with_first_pause(Duration::from_millis(10))
        .with_hold_off(Duration::from_secs(600))
        .with_hold_off_max(Duration::from_secs(600));
    let starts = Arc::<AtomicU32>::default();
    let first = node(stage.elections().await, "a").restart(restart);
    let first = counting(first, &starts, || Err("not here")).start().unwrap();
    let is_held_off = |status: &frazil_election::processor::Status| {
        status.job("odd").unwrap().state == JobState::HeldOff
    };
    let mut status = first.status();
    tokio::time::timeout(PATIENCE, status.wait_for(is_held_off)).await.unwrap().unwrap();
    assert_eq!(starts.load(Ordering::SeqCst), 3, "once, and two more tries");
    let journal = Journal::default();
    let second = with_jobs(node(stage.elections().await, "b"), &journal, "b", &["odd".into()]);
    let second = second.start().unwrap();
    until("the other to have it", || journal.runs_on("odd", "b")).await;
    second.stop().await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_does_not_stop_is_aborted_at_the_end_of_the_drain_and_handed_over() {
    let stage = Stage::new(Kind::Memory);
    let journal = Journal::default();
    let hanging = |processor: Processor, name: &'static str| {
        let journal = journal.clone();
        processor.drain(Duration::from_millis(300)).job("odd", move |run: Run| {
            let entry = journal.begin(&run, name);
            async move {
                std::future::pending::<()>().await;
                drop(entry);
                Ok(())
            }
        })
    };
    let first = hanging(node(stage.elections().await, "a"), "a").start().unwrap();
    leads(&first, 1).await;
    let second = hanging(node(stage.elections().await, "b"), "b").start().unwrap();
    let mut events = first.events();
    assert!(first.stop().await.unfinished.is_empty());
    event(&mut events, "odd", |step| *step == Step::Stopped { aborted: true }).await;
    until("the other to have it", || journal.runs_on("odd", "b")).await;
    journal.check();
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_job_that_blocks_its_thread_keeps_its_leadership_until_it_ends() {
    let stage = Stage::new(Kind::Memory);
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let processor = node(stage.elections().await, "a").drain(Duration::from_millis(50));
    let running = processor
        .voluntary_timeout(|_| Duration::from_millis(100))
        .strict()
        .job("odd", move |_| {
            let blocked = blocked.clone();
            async move { Ok(blocked.lock().unwrap().recv()?) }
        })
        .start()
        .unwrap();
    let is_stuck = |status: &frazil_election::processor::Status| {
        status.job("odd").unwrap().state == JobState::Stuck
    };
    let mut status = running.status();
    tokio::time::timeout(PATIENCE, status.wait_for(is_stuck)).await.unwrap().unwrap();
    let elections = stage.elections().await;
    assert!(elections.leader("app:job:odd").await.unwrap().is_some());
    let mut events = running.events();
    unblock.send(()).unwrap();
    event(&mut events, "odd", |step| *step == Step::Released).await;
    drop(unblock);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_processor_stops_its_jobs_and_gives_them_back() {
    let stage = Stage::new(Kind::Memory);
    let (journal, jobs) = (Journal::default(), names(3));
    let first = with_jobs(node(stage.elections().await, "a"), &journal, "a", &jobs);
    let first = first.start().unwrap();
    leads(&first, 3).await;
    drop(first);
    let second = with_jobs(node(stage.elections().await, "b"), &journal, "b", &jobs);
    let second = second.start().unwrap();
    leads(&second, 3).await;
    journal.check();
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_job_that_pauses_can_be_stopped_at_once() {
    let stage = Stage::new(Kind::Memory);
    let restart = Restart::default().with_first_pause(Duration::from_secs(600));
    let restart = restart.with_pause_max(restart.first_pause);
    let (failed, first) = (Arc::new(Notify::new()), watch::Sender::new(true));
    let (told, fails) = (failed.clone(), first.subscribe());
    let running = node(stage.elections().await, "a").restart(restart).job("odd", move |_| {
        told.notify_one();
        let fails = *fails.borrow();
        async move { if fails { Err("once".into()) } else { Ok(()) } }
    });
    let running = running.start().unwrap();
    let mut events = running.events();
    failed.notified().await;
    event(&mut events, "odd", |step| matches!(step, Step::Failed(_))).await;
    assert!(tokio::time::timeout(PATIENCE, running.stop()).await.unwrap().unfinished.is_empty());
    let released = event(&mut events, "odd", |step| *step == Step::Released).await;
    assert_ne!(released.step, Step::Cancelled(StopReason::Shutdown));
}
