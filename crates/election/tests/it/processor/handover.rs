//! How jobs pass from one node to the next.

use std::time::Duration;

use frazil_election::processor::{Processor, Run, Running, Step, StopReason};
use tokio::sync::watch;

use crate::processor::crew::{event, leads, names, node, until, with_jobs, within};
use crate::processor::journal::Journal;
use crate::stage::{PATIENCE, Stage, on_every_store};

on_every_store! {
    a_job_is_handed_over_the_moment_it_stopped_and_not_after_the_slowest,
    leaders_of_jobs_are_seen_with_rising_tokens,
}

const SLOW: &str = "slow";

/// A node whose job `slow` stops only when `may_stop` says so. `all_wait`: the others too, which is
/// what a processor amounts to that hands over after the slowest.
fn with_a_slow_job(
    processor: Processor,
    (journal, name): (&Journal, &str),
    may_stop: &watch::Receiver<bool>,
    all_wait: bool,
) -> Processor {
    let mut processor = processor;
    for job in names(3).into_iter().chain([SLOW.to_owned()]) {
        let waits = all_wait || job == SLOW;
        let (journal, name, may_stop) = (journal.clone(), name.to_owned(), may_stop.clone());
        processor = processor.job(job, move |run: Run| {
            let (entry, mut may_stop) = (journal.begin(&run, &name), may_stop.clone());
            async move {
                run.cancelled().await;
                if waits {
                    may_stop.wait_for(|may| *may).await?;
                }
                drop(entry);
                Ok(())
            }
        });
    }
    processor
}

/// Two nodes: the first has all jobs, the second waits.
async fn pair(
    stage: &Stage,
    journal: &Journal,
    may_stop: &watch::Receiver<bool>,
    all_wait: bool,
) -> (Running, Running) {
    let slow = |processor, name| with_a_slow_job(processor, (journal, name), may_stop, all_wait);
    let first = slow(node(stage.elections().await, "a"), "a").start().unwrap();
    leads(&first, 4).await;
    let second = slow(node(stage.elections().await, "b"), "b").start().unwrap();
    let mut status = second.status();
    tokio::time::timeout(PATIENCE, status.wait_for(|s| s.member.is_some())).await.unwrap().unwrap();
    (first, second)
}

/// Whether every job but the slow one is with the second node while the slow one runs on.
fn others_are_handed_over(journal: &Journal) -> bool {
    let others = names(3).iter().all(|job| journal.runs_on(job, "b"));
    others && journal.runs_on(SLOW, "a")
}

async fn a_job_is_handed_over_the_moment_it_stopped_and_not_after_the_slowest(stage: Stage) {
    let (journal, (release, may_stop)) = (Journal::default(), watch::channel(false));
    let (first, second) = pair(&stage, &journal, &may_stop, false).await;
    let stopping = tokio::spawn(first.stop());
    until("the others to be handed over", || others_are_handed_over(&journal)).await;
    assert!(!stopping.is_finished());
    release.send(true).unwrap();
    until("the slow one to be handed over", || journal.runs_on(SLOW, "b")).await;
    assert!(stopping.await.unwrap().unfinished.is_empty());
    second.stop().await;
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_processor_that_hands_over_after_the_slowest_would_be_caught() {
    let stage = Stage::new(crate::stage::Kind::Memory);
    let (journal, (release, may_stop)) = (Journal::default(), watch::channel(false));
    let (first, second) = pair(&stage, &journal, &may_stop, true).await;
    let stopping = tokio::spawn(first.stop());
    until("the jobs to be cancelled", || journal.running().len() == 4).await;
    assert!(!within(Duration::from_secs(1), || others_are_handed_over(&journal)).await);
    release.send(true).unwrap();
    stopping.await.unwrap();
    second.stop().await;
}

async fn leaders_of_jobs_are_seen_with_rising_tokens(stage: Stage) {
    let (journal, jobs) = (Journal::default(), names(2));
    let elections = stage.elections().await;
    let mut last = Vec::new();
    for name in ["a", "b"] {
        let running = with_jobs(node(elections.clone(), name), &journal, name, &jobs).start();
        let running = running.unwrap();
        leads(&running, 2).await;
        let standings = elections.leaders().await.unwrap();
        let led = standings.iter().filter_map(|standing| standing.leader.as_ref());
        let led: Vec<_> = led.filter(|leader| leader.name.starts_with("app:job:")).collect();
        assert_eq!(led.len(), 2);
        assert!(led.iter().all(|leader| leader.instance == name), "{led:?}");
        let tokens: Vec<_> = led.iter().map(|leader| leader.token).collect();
        assert!(last.iter().zip(&tokens).all(|(before, now)| before < now));
        last = tokens;
        let status = running.status().borrow().clone();
        assert_eq!(status.job("job-0").unwrap().token, Some(last[0]));
        running.stop().await;
    }
    // Nodes leave no more records than there were nodes at a time.
    let standings = elections.leaders().await.unwrap();
    let nodes: Vec<_> = standings.iter().filter(|s| s.name.starts_with("app:node:")).collect();
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_a_hand_over_is_told_in_order_with_its_token() {
    let stage = Stage::new(crate::stage::Kind::Memory);
    let (journal, jobs) = (Journal::default(), names(1));
    let first = with_jobs(node(stage.elections().await, "a"), &journal, "a", &jobs);
    let first = first.start().unwrap();
    let mut events = first.events();
    let elected = event(&mut events, "job-0", |step| *step == Step::Elected).await;
    let started = event(&mut events, "job-0", |step| *step == Step::Started).await;
    tokio::spawn(first.stop());
    let cancelled = |step: &Step| *step == Step::Cancelled(StopReason::Shutdown);
    let cancelled = event(&mut events, "job-0", cancelled).await;
    let stopped = |step: &Step| *step == Step::Stopped { aborted: false };
    let stopped = event(&mut events, "job-0", stopped).await;
    let released = event(&mut events, "job-0", |step| *step == Step::Released).await;
    let steps = [elected, started, cancelled, stopped, released];
    assert!(steps.iter().all(|step| step.token == steps[0].token));
    assert!(steps.is_sorted_by_key(|step| step.at));
}
