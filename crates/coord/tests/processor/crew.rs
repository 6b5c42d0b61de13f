//! Nodes with jobs that do nothing but run, and ways to wait for them.

use std::time::Duration;

use frazil_coord::election::{Elections, Settings};
use frazil_coord::processor::{Balance, Event, Processor, Restart, Run, Running, Step};
use tokio::sync::broadcast;

use crate::journal::Journal;
use crate::stage::{PATIENCE, settings};

/// A processor with short times and no jobs yet.
pub(crate) fn node(elections: Elections, name: &str) -> Processor {
    Processor::new(elections, "app", name)
        .settings(Settings { ..settings(name) })
        .settle(Duration::from_millis(100))
        .drain(Duration::from_secs(20))
        .restart(Restart { first_pause: Duration::from_millis(20), ..Restart::default() })
        .balance(None)
}

/// Moves jobs soon.
pub(crate) fn quick_balance() -> Option<Balance> {
    Some(Balance {
        window: Duration::from_millis(500),
        pause: Duration::from_millis(50),
        min_hold: Duration::from_millis(200),
    })
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
