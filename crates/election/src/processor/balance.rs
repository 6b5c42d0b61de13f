//! The decision to give a job away so that loads become even: pure.
//!
//! One job moves at a time: only the heaviest node gives one away, and only when nothing has moved
//! for a while. A move that did not help is not repeated soon.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::placement::ClusterView;

/// How eagerly jobs are moved so that loads become even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Balance {
    /// No job moves before the nodes have been the same for this long.
    pub window: Duration,
    /// No job moves before all jobs have been where they are for this long.
    pub pause: Duration,
    /// No job moves that a node has had for less than this.
    pub min_hold: Duration,
}

impl Default for Balance {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Balance {
    /// A window of 3 s, a pause of 250 ms, and jobs stay for at least 5 s.
    pub const DEFAULT: Self = Self {
        window: Duration::from_secs(3),
        pause: Duration::from_millis(250),
        min_hold: Duration::from_secs(5),
    };

    /// This, with another window.
    #[must_use]
    pub const fn with_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// This, with another pause.
    #[must_use]
    pub const fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// This, with another time that jobs stay.
    #[must_use]
    pub const fn with_min_hold(mut self, min_hold: Duration) -> Self {
        self.min_hold = min_hold;
        self
    }
}

/// What one node remembers of how jobs moved.
#[derive(Debug)]
pub struct Balancer {
    balance: Balance,
    nodes: BTreeSet<String>,
    nodes_since: Duration,
    holders: BTreeMap<String, Option<String>>,
    holders_since: Duration,
    /// The job that was given away last.
    last: Option<String>,
    not_before: Duration,
}

/// What to do about loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BalanceStep {
    /// Nothing until something changes.
    Even,
    /// Look again at this boot time.
    LookAt(Duration),
    /// Give this job away.
    GiveAway(String),
}

impl Balancer {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(balance: Balance) -> Self {
        Self {
            balance,
            nodes: BTreeSet::new(),
            nodes_since: Duration::ZERO,
            holders: BTreeMap::new(),
            holders_since: Duration::ZERO,
            last: None,
            not_before: Duration::ZERO,
        }
    }

    /// Judges what is seen at a boot time. `own`: the jobs that this node runs, and since when.
    pub fn look(
        &mut self,
        cluster: &ClusterView,
        node: &str,
        own: &BTreeMap<String, Duration>,
        now: Duration,
    ) -> BalanceStep {
        self.note(cluster, now);
        let (true, Some(to)) = (cluster.is_heaviest(node), cluster.lighter(node)) else {
            return BalanceStep::Even;
        };
        let Balance { window, pause, min_hold } = self.balance;
        let calm = (self.nodes_since + window).max(self.holders_since + pause);
        let calm = calm.max(self.not_before);
        if now < calm {
            return BalanceStep::LookAt(calm);
        }
        let arrived = |job: &String| {
            let holder = cluster.jobs.get(job).and_then(Option::as_deref);
            holder.is_some_and(|holder| holder != node)
        };
        if self.last.take().is_some_and(|job| !arrived(&job)) {
            // Who should have it may be gone, with its presence still to lapse.
            self.not_before = now + window * 4;
            return BalanceStep::LookAt(self.not_before);
        }
        let is_settled = |job: &str| own.get(job).is_some_and(|since| now >= *since + min_hold);
        match cluster.to_move(node, to, is_settled) {
            Some(job) => {
                self.last = Some(job.to_owned());
                self.holders_since = now;
                BalanceStep::GiveAway(job.to_owned())
            }
            None => match own.values().min() {
                Some(since) => BalanceStep::LookAt((*since + min_hold).max(now + pause)),
                None => BalanceStep::Even,
            },
        }
    }

    fn note(&mut self, cluster: &ClusterView, now: Duration) {
        if !cluster.nodes.keys().eq(self.nodes.iter()) {
            self.nodes = cluster.nodes.keys().cloned().collect();
            self.nodes_since = now;
        }
        if cluster.jobs != self.holders {
            self.holders.clone_from(&cluster.jobs);
            self.holders_since = now;
        }
    }
}

#[cfg(test)]
mod tests;
