//! Nodes with jobs that do nothing but run, and ways to wait for them.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_coord::{Group, Slot, Store};
use frazil_election::processor::{Balance, Event, Processor, Restart, Run, Running, Step};
use frazil_election::{Elections, LeaderInfo, Leadership};
use tokio::sync::broadcast;

use crate::processor::journal::Journal;
use crate::stage::{PATIENCE, settings};

/// A processor with short times and no jobs yet.
pub(crate) fn node(elections: Elections, name: &str) -> Processor {
    Processor::new(elections, "app", name)
        .settings(settings(name))
        .settle(Duration::from_millis(100))
        .drain(Duration::from_secs(20))
        .restart(Restart::default().with_first_pause(Duration::from_millis(20)))
        .balance(None)
}

/// Moves jobs soon.
pub(crate) fn quick_balance() -> Option<Balance> {
    Some(
        Balance::DEFAULT
            .with_window(Duration::from_millis(500))
            .with_pause(Duration::from_millis(50))
            .with_min_hold(Duration::from_millis(200)),
    )
}

/// Names of jobs.
pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("job-{index}")).collect()
}

/// Adds jobs that run until they are cancelled.
pub(crate) fn with_jobs(
    mut processor: Processor,
    journal: &Journal,
    node: &str,
    jobs: &[String],
) -> Processor {
    for job in jobs {
        let (journal, node) = (journal.clone(), node.to_owned());
        processor = processor.job(job, move |run: Run| {
            let entry = journal.begin(&run, &node);
            async move {
                run.cancelled().await;
                drop(entry);
                Ok(())
            }
        });
    }
    processor
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    assert!(within(PATIENCE, is_so).await, "waited in vain for {what}");
}

/// Whether something is so within a time.
pub(crate) async fn within(limit: Duration, is_so: impl Fn() -> bool) -> bool {
    let looks = async {
        let mut pace = tokio::time::interval(Duration::from_millis(5));
        while !is_so() {
            pace.tick().await;
        }
    };
    tokio::time::timeout(limit, looks).await.is_ok()
}

/// Waits until a node leads this many jobs.
pub(crate) async fn leads(node: &Running, jobs: usize) {
    let mut status = node.status();
    let reached = tokio::time::timeout(PATIENCE, status.wait_for(|s| s.led() == jobs)).await;
    assert!(reached.is_ok(), "{:#?}", node.status().borrow());
}

/// Waits for an event of a job that is wanted.
pub(crate) async fn event(
    events: &mut broadcast::Receiver<Event>,
    job: &str,
    wanted: impl Fn(&Step) -> bool,
) -> Event {
    let seen = async {
        loop {
            let event = events.recv().await.expect("no event was missed");
            if event.job == job && wanted(&event.step) {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("it never happened")
}

/// The slot of a job.
pub(crate) fn slot(job: &str) -> Slot {
    Slot::named(Group::Elections, &format!("app:job:{job}")).unwrap()
}

/// Somebody else takes a job, whoever has it.
pub(crate) async fn take_over(memory: &MemoryStore, job: &str) -> Leadership {
    let elections = Elections::new(Arc::new(memory.clone()));
    let candidate = elections.candidate(slot(job).name(), settings("thief")).unwrap();
    let campaign = candidate.campaign();
    tokio::pin!(campaign);
    let mut pace = tokio::time::interval(Duration::from_millis(2));
    let taking = async {
        loop {
            expire_unless(memory, job, "thief").await;
            tokio::select! {
                won = &mut campaign => return won.unwrap(),
                _ = pace.tick() => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, taking).await.expect("it is taken")
}

/// Ends the presence in a job's slot, unless it is free or this one's. While it is held nobody else
/// can take it, so what is looked at is what is ended.
async fn expire_unless(memory: &MemoryStore, job: &str, holder: &str) {
    let entries = memory.list(Group::Elections).await.unwrap();
    let entry = entries.into_iter().find(|entry| entry.slot == slot(job));
    let is_anothers = entry.and_then(|entry| LeaderInfo::of(&entry));
    if is_anothers.is_some_and(|leader| leader.instance != holder) {
        memory.expire(&slot(job));
    }
}
