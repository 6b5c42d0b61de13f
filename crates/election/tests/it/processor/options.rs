//! Options, each and together, and what is refused.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_coord::internal::time::boot_time;
use frazil_coord::{Act, Metered, Outcome};
use frazil_election::Elections;
use frazil_election::processor::{Processor, ProcessorError, Step, StopReason, WhenDone};

use crate::processor::crew::{event, leads, names, node, quick_balance, until, with_jobs, within};
use crate::processor::journal::Journal;
use crate::stage::PATIENCE;

fn elections() -> Elections {
    Elections::new(Arc::new(MemoryStore::new()))
}

async fn idle(
    _: frazil_election::processor::Run,
) -> Result<(), frazil_election::processor::BoxError> {
    Ok(())
}

#[tokio::test]
async fn without_jobs_a_processor_is_refused_or_waits_for_its_end() {
    let refused = node(elections(), "a").run(async {}).await;
    assert_eq!(refused.unwrap_err(), ProcessorError::NoJobs);
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let waits = node(elections(), "a").block_without_jobs();
    let waiting = tokio::spawn(waits.run(async { drop(ended.await) }));
    assert!(!within(Duration::from_millis(200), || waiting.is_finished()).await);
    end.send(()).unwrap();
    let report = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    assert!(report.unfinished.is_empty());
}

#[tokio::test]
async fn names_and_times_that_do_not_fit_are_refused_with_what_to_do() {
    let refusal = |processor: Processor| processor.start().unwrap_err();
    let with = |app: &str, job: &str| Processor::new(elections(), app, "a").job(job, idle);
    assert_eq!(refusal(with("app", "x").job("x", idle)), ProcessorError::Twice("x".into()));
    assert_eq!(refusal(with("a:b", "x")), ProcessorError::App("a:b".into()));
    assert_eq!(refusal(with("", "x")), ProcessorError::App(String::new()));
    for job in ["", "a b", "a/b", &"x".repeat(122)] {
        assert!(matches!(refusal(with("app", job)), ProcessorError::Job(_)), "{job:?}");
    }
    let late = refusal(with("app", "x").stop_budget(Duration::from_secs(5)));
    assert!(late.to_string().contains("use at most 3.5s"), "{late}");
    let nameless = refusal(Processor::new(elections(), "app", "").job("x", idle));
    assert!(matches!(nameless, ProcessorError::Settings(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_delay_and_a_voluntary_timeout_both_take_effect() {
    let journal = Journal::default();
    let delay = |job: &str| Duration::from_millis(if job == "job-0" { 700 } else { 0 });
    let processor = node(elections(), "a")
        .start_delay(delay)
        .voluntary_timeout(|_| Duration::from_millis(400))
        .strict();
    let started = boot_time();
    let running = with_jobs(processor, &journal, "a", &names(2)).start().unwrap();
    let mut events = running.events();
    let elected = event(&mut events, "job-0", |step| *step == Step::Elected).await;
    assert!(elected.at >= started + Duration::from_millis(700), "it was not delayed");
    assert!(journal.spans()[0].job == "job-1", "the other was not");
    let given_up = |step: &Step| *step == Step::Cancelled(StopReason::Timeout);
    let given_up = event(&mut events, "job-0", given_up).await;
    assert!(given_up.at >= elected.at + Duration::from_millis(400));
    // Nobody else wants it, so it comes back, with a new token and without another delay.
    let again = event(&mut events, "job-0", |step| *step == Step::Elected).await;
    assert!(again.token > elected.token);
    running.stop().await;
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voluntary_timeout_moves_jobs_only_while_that_helps() {
    let (journal, jobs, store) = (Journal::default(), names(6), Arc::new(MemoryStore::new()));
    let start = |name: &'static str| {
        let processor = node(Elections::new(store.clone()), name);
        let processor = processor.voluntary_timeout(|_| Duration::from_millis(100));
        with_jobs(processor, &journal, name, &jobs).start().unwrap()
    };
    let first = start("a");
    leads(&first, 6).await;
    let moved = || journal.spans().len() > 6;
    assert!(!within(Duration::from_millis(500), moved).await, "there is nobody to give them to");
    let second = start("b");
    until("jobs to move", || journal.loads(&["a", "b"]) == [3, 3]).await;
    let runs = journal.spans().len();
    assert!(!within(Duration::from_secs(1), || journal.spans().len() > runs).await, "needlessly");
    first.stop().await;
    second.stop().await;
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_options_go_together() {
    let (journal, jobs, store) = (Journal::default(), names(7), Arc::new(MemoryStore::new()));
    let start = |name: &'static str| {
        let processor = node(Elections::new(store.clone()), name)
            .start_delay(|_| Duration::from_millis(50))
            .voluntary_timeout(|_| Duration::from_millis(300))
            .strict()
            .quota(4)
            .block_without_jobs()
            .drain(Duration::from_secs(5))
            .stop_budget(Duration::from_millis(500))
            .when_done(WhenDone::Again(Duration::from_millis(10)))
            .rank_step(Duration::from_millis(5))
            .balance(quick_balance());
        with_jobs(processor, &journal, name, &jobs).start().unwrap()
    };
    let nodes = ["a", "b"].map(start);
    until("many hand-overs", || journal.spans().len() > 60).await;
    for node in nodes {
        assert!(node.stop().await.unfinished.is_empty());
    }
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_jobs_there_are_the_store_is_watched_once() {
    let store = Arc::new(Metered::new(Arc::new(MemoryStore::new())));
    let (journal, jobs) = (Journal::default(), names(29));
    let processor = node(Elections::new(store.clone()), "a");
    let running = with_jobs(processor, &journal, "a", &jobs).start().unwrap();
    leads(&running, 29).await;
    running.stop().await;
    assert_eq!(store.operations(Act::Watch, Outcome::Done).count, 1);
}
