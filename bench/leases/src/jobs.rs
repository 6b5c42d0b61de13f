//! A rolling restart of three nodes with 29 jobs: how long a job is without a node, and how soon
//! loads are even again.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil::election::processor::{Processor, Run, Running};

use crate::election::{elections, settings};
use crate::server::Server;

const JOBS: usize = 29;
const NODES: [&str; 3] = ["a", "b", "c"];
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was measured.
pub(crate) struct Jobs {
    /// From the start of three nodes at once to the run of the last job.
    pub(crate) start: Duration,
    /// How long a job was not run between two nodes, each time.
    pub(crate) gaps: Vec<Duration>,
    /// From the last restart to loads that differ by one at most.
    pub(crate) even_after: Duration,
    /// Those loads.
    pub(crate) loads: Vec<usize>,
}

/// Where each job runs, or since when it does not.
#[derive(Default)]
struct Log {
    running: BTreeMap<String, &'static str>,
    stopped: BTreeMap<String, Duration>,
    gaps: Vec<Duration>,
}

type Shared = Arc<Mutex<Log>>;

impl Jobs {
    pub(crate) async fn measure(server: &Server) -> Result<Self, Box<dyn Error>> {
        let (url, log) = (server.url(), Shared::default());
        let started = boot_time();
        let mut nodes = BTreeMap::new();
        for name in NODES {
            nodes.insert(name, start(&url, name, &log).await?);
        }
        until("all jobs to run", || running(&log) == JOBS).await?;
        let start_took = boot_time() - started;
        until("an even start", || is_even(&log)).await?;
        for name in NODES {
            if let Some(node) = nodes.remove(name) {
                node.stop().await;
            }
            until("all jobs to run", || running(&log) == JOBS).await?;
            let again = start(&url, name, &log).await?;
            again.status().wait_for(|status| status.member.is_some()).await?;
            nodes.insert(name, again);
        }
        let restarted = boot_time();
        until("even loads", || is_even(&log)).await?;
        let even_after = boot_time() - restarted;
        let (loads, gaps) = (loads(&log), lock(&log).gaps.clone());
        for node in nodes.into_values() {
            node.stop().await;
        }
        Ok(Self { start: start_took, gaps, even_after, loads })
    }
}

async fn start(url: &str, name: &'static str, log: &Shared) -> Result<Running, Box<dyn Error>> {
    let elections = elections(url, "jobs").await?;
    let mut processor = Processor::new(elections, "bench", name).settings(settings(name));
    for job in 0..JOBS {
        let log = log.clone();
        processor = processor.job(format!("job-{job}"), move |run: Run| {
            let log = log.clone();
            async move {
                begin(&log, run.name(), name);
                run.cancelled().await;
                end(&log, run.name());
                Ok(())
            }
        });
    }
    Ok(processor.start()?)
}

fn begin(log: &Shared, job: &str, node: &'static str) {
    let mut log = lock(log);
    if let Some(stopped) = log.stopped.remove(job) {
        log.gaps.push(boot_time() - stopped);
    }
    log.running.insert(job.to_owned(), node);
}

fn end(log: &Shared, job: &str) {
    let mut log = lock(log);
    log.running.remove(job);
    log.stopped.insert(job.to_owned(), boot_time());
}

fn running(log: &Shared) -> usize {
    lock(log).running.len()
}

fn loads(log: &Shared) -> Vec<usize> {
    let log = lock(log);
    NODES.iter().map(|node| log.running.values().filter(|on| *on == node).count()).collect()
}

fn is_even(log: &Shared) -> bool {
    let loads = loads(log);
    let (least, most) = (loads.iter().min(), loads.iter().max());
    running(log) == JOBS && least.zip(most).is_some_and(|(least, most)| most - least <= 1)
}

async fn until(what: &str, is_so: impl Fn() -> bool) -> Result<(), Box<dyn Error>> {
    let looks = async {
        let mut pace = tokio::time::interval(Duration::from_millis(1));
        while !is_so() {
            pace.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, looks).await.map_err(|_| format!("in vain: {what}").into())
}

fn lock(log: &Shared) -> std::sync::MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
