//! Who takes part: how many nodes, their leases, and how hard they are asked.

use std::time::Duration;

use crate::load::Pressure;
use crate::store::Setting;

/// The times of leases in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    pub(crate) ttl: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) budget: Duration,
}

impl Lease {
    /// The shortest that is allowed: what takes minutes in production takes seconds here.
    pub(crate) const SHORT: Self = Self {
        ttl: Duration::from_secs(1),
        heartbeat: Duration::from_millis(300),
        budget: Duration::from_secs(3),
    };
}

/// Who takes part.
#[derive(Clone, Debug)]
pub(crate) struct Cast {
    pub(crate) nodes: usize,
    /// How many of them cannot get a worker at first, since there are fewer.
    pub(crate) workers: u64,
    pub(crate) lease: Lease,
    pub(crate) more_flags: Vec<String>,
    pub(crate) pressure: Pressure,
    pub(crate) namespace: Namespace,
    pub(crate) setting: Setting,
    /// How many of the nodes, the last ones, are not started with the others.
    pub(crate) late: usize,
    pub(crate) names: Names,
    /// How long a node goes on after SIGTERM, for balancers to notice.
    pub(crate) drain_delay: Duration,
}

/// What nodes are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Different,
    /// A mistake that a template or a copied machine makes.
    Same,
}

/// How a namespace comes to be, and with that how long its lost slots rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    /// By `frazil store init`, with the shortest window that it takes: 90 s.
    Created,
    /// By the first node, which waits some seconds for holders of a forgotten one. Its window is the
    /// outage budget: what is lost rests for seconds.
    Found,
}

impl Default for Cast {
    fn default() -> Self {
        Self {
            nodes: 3,
            workers: 8,
            lease: Lease::SHORT,
            more_flags: Vec::new(),
            pressure: Pressure::default(),
            namespace: Namespace::Created,
            setting: Setting::One,
            late: 0,
            names: Names::Different,
            drain_delay: Duration::from_millis(1),
        }
    }
}

impl Cast {
    /// What all nodes are told.
    pub(super) fn flags(&self, workers: &str) -> Vec<String> {
        let ms = |time: Duration| format!("{}ms", time.as_millis());
        let Lease { ttl, heartbeat, budget } = self.lease;
        let mut flags = vec!["--workers".to_owned(), workers.to_owned()];
        for (flag, value) in [
            ("--ttl", ttl),
            ("--heartbeat", heartbeat),
            ("--outage-budget", budget),
            ("--drain-delay", self.drain_delay),
        ] {
            flags.extend([flag.to_owned(), ms(value)]);
        }
        flags.extend(self.more_flags.iter().cloned());
        flags
    }
}
