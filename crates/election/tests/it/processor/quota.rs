//! Quotas: kept before anything is claimed, never leaked, and no cause of churn.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_coord::{Act, Metered, Outcome};
use frazil_election::Elections;
use frazil_election::processor::{Run, WhenDone};

use crate::processor::crew::{leads, names, node, take_over, until, with_jobs, within};
use crate::processor::journal::Journal;
use crate::stage::{Stage, on_every_store};

on_every_store! {
    nodes_together_run_no_more_than_their_quotas,
}

async fn nodes_together_run_no_more_than_their_quotas(stage: Stage) {
    let (journal, jobs) = (Journal::default(), names(7));
    let mut nodes = Vec::new();
    for name in ["a", "b"] {
        let processor = node(stage.elections().await, name).quota(3);
        nodes.push(with_jobs(processor, &journal, name, &jobs).start().unwrap());
    }
    until("quotas to be used", || journal.loads(&["a", "b"]) == [3, 3]).await;
    // The seventh is won by nobody, not even for a moment.
    assert!(!within(Duration::from_secs(1), || journal.spans().len() != 6).await);
    let first = nodes.remove(0);
    first.stop().await;
    until("the rest to stay", || journal.loads(&["a", "b"]) == [0, 3]).await;
    nodes.remove(0).stop().await;
    journal.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_claims_nothing() {
    let store = Arc::new(Metered::new(Arc::new(MemoryStore::new())));
    let (journal, jobs) = (Journal::default(), names(9));
    let processor = node(Elections::new(store.clone()), "a").quota(2);
    let running = with_jobs(processor, &journal, "a", &jobs).start().unwrap();
    leads(&running, 2).await;
    // Renewals make views, and at each of them nine campaigns ask.
    let claims = || {
        let count = |outcome| store.operations(Act::Acquire, outcome).count;
        Outcome::all().map(count).sum::<u64>()
    };
    assert!(!within(Duration::from_secs(2), || claims() > 3).await, "two jobs and a place");
    assert_eq!(claims(), 3);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn losses_do_not_use_up_a_quota() {
    let (memory, journal, jobs) = (MemoryStore::new(), Journal::default(), names(2));
    let elections = Elections::new(Arc::new(memory.clone()));
    let processor = node(elections.clone(), "a").quota(1);
    let running = with_jobs(processor, &journal, "a", &jobs).start().unwrap();
    for round in 1..=4 {
        leads(&running, 1).await;
        until("it to run", || journal.running().len() == 1).await;
        let job = journal.running().into_keys().next().unwrap();
        let stolen = take_over(&memory, &job).await;
        // The other job takes the place, and later this one is free again.
        until("the other to run", || {
            journal.running().keys().ne([&job]) && journal.running().len() == 1
        })
        .await;
        stolen.resign().await.unwrap();
        assert!(journal.spans().len() > round);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_a_finished_job_leaves_is_taken() {
    let (journal, store) = (Journal::default(), Arc::new(MemoryStore::new()));
    let processor = node(Elections::new(store), "a").quota(1).when_done(WhenDone::Release);
    let written = journal.clone();
    let processor = names(5).into_iter().fold(processor, |processor, job| {
        let journal = written.clone();
        processor.job(job, move |run: Run| {
            let entry = journal.begin(&run, "a");
            async move {
                tokio::task::yield_now().await;
                drop(entry);
                Ok(())
            }
        })
    });
    let running = processor.start().unwrap();
    until("all to have had their turn", || journal.spans().len() == 5).await;
    running.stop().await;
    let mut spans = journal.spans();
    spans.sort_by_key(|span| span.begin);
    let one_at_a_time = spans.windows(2).all(|pair| pair[0].end.unwrap() <= pair[1].begin);
    assert!(one_at_a_time, "{spans:#?}");
}
