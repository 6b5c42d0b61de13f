//! The jobs that this node runs and reaches for, so that a quota is kept before anything is claimed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::placement::ClusterView;

/// The jobs of one node. Nothing in it outlives what it counts, so that nothing leaks: who
/// reaches for a job that another has is not counted, and a job is struck off when it stopped.
#[derive(Debug)]
pub(super) struct Quota {
    node: String,
    quota: Option<usize>,
    jobs: Mutex<Jobs>,
}

#[derive(Debug, Default)]
struct Jobs {
    /// Since when, in boot time.
    running: BTreeMap<String, Duration>,
    reaching: BTreeSet<String>,
    /// Given up of one's own accord, and not seen elsewhere yet.
    leaving: BTreeSet<String>,
}

impl Quota {
    pub(super) fn new(node: String, quota: Option<usize>) -> Self {
        Self { node, quota, jobs: Mutex::default() }
    }

    /// Whether this node may campaign for a job that nobody has. If so it is counted from now on,
    /// until it is [begun](Self::begin), [given up](Self::give_up), or seen to be another's.
    pub(super) fn reach(&self, job: &str, cluster: &ClusterView) -> bool {
        let mut jobs = self.lock();
        jobs.reaching.retain(|reached| !self.is_anothers(reached, cluster));
        jobs.reaching.remove(job);
        let may = self.has_room(jobs.running.len() + jobs.reaching.len());
        if may {
            jobs.reaching.insert(job.to_owned());
        }
        may
    }

    /// Counts a job that was won. `false`: there is no room for it after all.
    pub(super) fn begin(&self, job: &str, now: Duration) -> bool {
        let mut jobs = self.lock();
        jobs.reaching.remove(job);
        jobs.leaving.remove(job);
        let may = self.has_room(jobs.running.len());
        if may {
            jobs.running.insert(job.to_owned(), now);
        }
        may
    }

    /// Whether giving a job up would make loads more even, once all that were given up before have
    /// arrived. If so it counts as given up from now on.
    pub(super) fn leave(&self, job: &str, cluster: &ClusterView) -> bool {
        let mut jobs = self.lock();
        jobs.leaving.retain(|left| !self.is_anothers(left, cluster));
        let mut expected = cluster.clone();
        for left in jobs.leaving.iter().filter(|left| *left != job) {
            let to = expected.lighter(&self.node).map(str::to_owned);
            expected.jobs.insert(left.clone(), to);
        }
        let helps = expected.lighter(&self.node).is_some();
        if helps {
            jobs.leaving.insert(job.to_owned());
        }
        helps
    }

    /// A job has stopped.
    pub(super) fn end(&self, job: &str) {
        self.lock().running.remove(job);
    }

    /// A job is not campaigned for any more.
    pub(super) fn give_up(&self, job: &str) {
        self.lock().reaching.remove(job);
    }

    /// What runs, and since when.
    pub(super) fn running(&self) -> BTreeMap<String, Duration> {
        self.lock().running.clone()
    }

    fn is_anothers(&self, job: &str, cluster: &ClusterView) -> bool {
        let holder = cluster.jobs.get(job).and_then(Option::as_ref);
        holder.is_some_and(|holder| *holder != self.node)
    }

    fn has_room(&self, taken: usize) -> bool {
        self.quota.is_none_or(|quota| taken < quota)
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        // Every change is complete before anything can panic.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
