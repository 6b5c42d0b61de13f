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
    /// What a node has that is told nothing.
    pub(crate) const DEFAULT: Self = Self {
        ttl: Duration::from_secs(30),
        heartbeat: Duration::from_secs(10),
        budget: Duration::from_secs(600),
    };
}

/// Who takes part.
#[derive(Clone, Debug)]
pub(crate) struct Participants {
    pub(crate) nodes: usize,
    /// How many of them cannot get a worker at first, since there are fewer.
    pub(crate) workers: u64,
    pub(crate) lease: Lease,
    /// Nodes whose leases have other times.
    pub(crate) own_leases: Vec<(usize, Lease)>,
    /// Nodes whose clocks are wrong from the beginning, by so many milliseconds.
    pub(crate) own_clocks: Vec<(usize, i64)>,
    pub(crate) more_flags: Vec<String>,
    pub(crate) pressure: Pressure,
    pub(crate) namespace: Namespace,
    /// Of a namespace that is created.
    pub(crate) window: Duration,
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
    /// By `frazil store init`; the shortest window that it takes is 90 s.
    Created,
    /// By the first node, which waits some seconds for holders of a forgotten one. Its window is the
    /// outage budget: what is lost rests for seconds.
    Found,
}

impl Default for Participants {
    fn default() -> Self {
        Self {
            nodes: 3,
            workers: 8,
            lease: Lease::SHORT,
            own_leases: Vec::new(),
            own_clocks: Vec::new(),
            more_flags: Vec::new(),
            pressure: Pressure::default(),
            namespace: Namespace::Created,
            window: Duration::from_secs(90),
            setting: Setting::One,
            late: 0,
            names: Names::Different,
            drain_delay: Duration::from_millis(1),
        }
    }
}

impl Participants {
    /// What a node is told.
    pub(super) fn flags(&self, node: usize, workers: &str) -> Vec<String> {
        let ms = |time: Duration| format!("{}ms", time.as_millis());
        let own = self.own_leases.iter().find(|(number, _)| *number == node);
        let Lease { ttl, heartbeat, budget } = own.map_or(self.lease, |(_, lease)| *lease);
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
