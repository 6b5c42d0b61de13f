//! Where a scenario is played: the store, the nodes, the clients, and the faults so far.

mod looks;

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use frazil_rig::wait_until;
use serde::Serialize;

use crate::availability::{Availability, IdsInFault};
use crate::checker::Counts;
use crate::clock;
use crate::history::Outcome;
use crate::load::{Load, Pressure};
use crate::node::{Node, Program};
use crate::store::{Kind, Setting, Store};
use crate::verdict::Verdict;

/// How long a node may take until it issues, at the beginning or after a fault.
const ISSUES: Duration = Duration::from_secs(40);

/// What is to be played.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) scenario: &'static str,
    pub(crate) store: Kind,
    pub(crate) seed: u64,
    /// 1 for as many cycles as the experiment asks for.
    pub(crate) scale: f64,
    pub(crate) frazil: PathBuf,
    pub(crate) mutant: Option<String>,
    /// Where logs go.
    pub(crate) directory: PathBuf,
}

impl Plan {
    /// How many cycles to play of those that the experiment asks for; at least one.
    pub(crate) fn cycles(&self, full: u32) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small count"
        )]
        let cycles = (f64::from(full) * self.scale).round() as u32;
        cycles.max(1)
    }
}

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

/// A fault that was made.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) node: Option<usize>,
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
}

/// Everything that runs.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(crate) random: fastrand::Rng,
    pub(crate) store: Store,
    pub(crate) lease: Lease,
    pub(crate) nodes: Vec<Node>,
    pub(crate) load: Load,
    pub(crate) faults: Vec<Fault>,
    pub(crate) verdict: Verdict,
    pub(crate) began: Duration,
}

/// How a run ended.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcomes {
    pub(crate) counts: Counts,
    pub(crate) refused: std::collections::BTreeMap<String, u64>,
    pub(crate) lost: u64,
    pub(crate) ids_in_faults: Vec<IdsInFault>,
    pub(crate) availability: Availability,
    pub(crate) faults: Vec<Fault>,
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
}

impl Stage {
    /// Starts the store and the nodes, waits until as many issue as there are workers for, and lets
    /// the clients loose.
    pub(crate) fn open(plan: &Plan, cast: &Cast) -> io::Result<Self> {
        std::fs::create_dir_all(&plan.directory)?;
        let store = Store::start(plan.store, cast.setting)?;
        let last = cast.workers.saturating_sub(1);
        let workers = format!("0-{last}");
        if cast.namespace == Namespace::Created {
            init(plan, &store, &workers)?;
        }
        let program = Program {
            frazil: plan.frazil.clone(),
            mutant: plan.mutant.clone(),
            flags: flags(cast, &workers),
            directory: plan.directory.clone(),
        };
        let mut nodes = Vec::new();
        for number in 0..cast.nodes {
            let name = match cast.names {
                Names::Different => format!("node-{number}"),
                Names::Same => "node".to_owned(),
            };
            nodes.push(Node::new(number, &name, &program, store.link()?)?);
        }
        let early = cast.nodes.saturating_sub(cast.late);
        nodes[..early].iter().try_for_each(Node::launch)?;
        let enough = early.min(usize::try_from(cast.workers).unwrap_or(usize::MAX));
        wait_until("the nodes to issue", ISSUES, || {
            nodes.iter().filter(|node| is_ready(node)).count() >= enough
        })?;
        let doors: Vec<_> = nodes.iter().map(|node| Arc::clone(&node.door)).collect();
        let load = Load::start(&doors, cast.pressure, plan.seed)?;
        let mut stage = Self {
            plan: plan.clone(),
            random: fastrand::Rng::with_seed(plan.seed),
            store,
            lease: cast.lease,
            nodes,
            load,
            faults: Vec::new(),
            verdict: Verdict::default(),
            began: clock::now(),
        };
        // A quiet while, to compare with.
        stage.rest(Duration::from_millis(1500));
        Ok(stage)
    }

    /// How many cycles to play of those that the experiment asks for; at least one.
    pub(crate) fn cycles(&self, full: u32) -> u32 {
        self.plan.cycles(full)
    }

    /// Whether to go on: what was found need not be found again.
    pub(crate) fn goes_on(&self) -> bool {
        !self.load.has_caught()
    }

    pub(crate) fn rest(&mut self, time: Duration) {
        let end = clock::now() + time;
        while self.goes_on() && clock::now() < end {
            clock::rest((end.saturating_sub(clock::now())).min(Duration::from_millis(50)));
        }
    }

    /// A time between two, by the seed.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.u64(nanos(least)..=nanos(most)))
    }

    /// Notes a fault from its beginning until now.
    pub(crate) fn was(&mut self, what: impl Into<String>, node: Option<usize>, begin: Duration) {
        self.faults.push(Fault { what: what.into(), node, begin, end: clock::now() });
    }

    /// The nodes that gave Ids within the last while.
    pub(crate) fn serving(&self) -> Vec<usize> {
        let now = clock::now();
        let since = now.saturating_sub(Duration::from_millis(400));
        let gives = |node: &usize| self.load.record.first_answer(*node, since).is_some();
        (0..self.nodes.len()).filter(gives).collect()
    }

    /// One of the nodes that serve, by the seed.
    pub(crate) fn any_serving(&mut self) -> io::Result<usize> {
        let limit = Duration::from_secs(30);
        wait_until("a node that serves", limit, || !self.serving().is_empty() || !self.goes_on())?;
        let serving = self.serving();
        let count = serving.len().max(1);
        Ok(serving.get(self.random.usize(0..count)).copied().unwrap_or(0))
    }

    /// Waits until a node answers a request that was sent from a moment on; how long that took.
    pub(crate) fn recovery(
        &self,
        node: usize,
        since: Duration,
        limit: Duration,
    ) -> io::Result<Duration> {
        let mut first = None;
        let what = format!("node {node} to issue again");
        wait_until(&what, limit, || {
            first = self.load.record.first_answer(node, since);
            first.is_some() || !self.goes_on()
        })?;
        Ok(first.unwrap_or(since).saturating_sub(since))
    }

    /// Ends the clients, checks everything, and stops all processes.
    pub(crate) fn close(self) -> io::Result<Outcomes> {
        let Self { mut verdict, load, nodes, store, faults, began, .. } = self;
        let seconds = (clock::now() - began).as_secs_f64();
        let strange = load.strange();
        verdict.hold("whole answers", strange == 0, || {
            format!("{strange} answers had not what was asked for")
        });
        let (record, checker) = load.stop()?;
        drop((nodes, store));
        let (found, _, counts) = checker.finish();
        verdict.absorb(found);
        let ids_in_faults = IdsInFault::of(&record, &faults);
        let mut refused = std::collections::BTreeMap::new();
        let lost = record.fold(0, |lost, mark| match &mark.outcome {
            Outcome::Ids(_) => lost,
            Outcome::Refused(reason) => {
                *refused.entry(reason.clone()).or_default() += 1;
                lost
            }
            Outcome::Lost => lost + 1,
        });
        let availability = Availability::of(&record, &faults);
        Ok(Outcomes {
            counts,
            refused,
            lost,
            ids_in_faults,
            availability,
            faults,
            seconds,
            verdict,
        })
    }
}

/// Creates the namespace, so that nobody waits for holders of a forgotten one.
pub(crate) fn init(plan: &Plan, store: &Store, workers: &str) -> io::Result<()> {
    let output = Command::new(&plan.frazil)
        .args(["store", "init", "--store", &store.url(), "--workers", workers, "--window", "90s"])
        .output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("frazil store init: {output:?}"))),
    }
}

fn flags(cast: &Cast, workers: &str) -> Vec<String> {
    let ms = |time: Duration| format!("{}ms", time.as_millis());
    let Lease { ttl, heartbeat, budget } = cast.lease;
    let mut flags = vec!["--workers".to_owned(), workers.to_owned()];
    for (flag, value) in [
        ("--ttl", ttl),
        ("--heartbeat", heartbeat),
        ("--outage-budget", budget),
        ("--drain-delay", cast.drain_delay),
    ] {
        flags.extend([flag.to_owned(), ms(value)]);
    }
    flags.extend(cast.more_flags.iter().cloned());
    flags
}

fn is_ready(node: &Node) -> bool {
    crate::http::ask_once(node.door.address, "GET", "/readyz")
        .is_ok_and(|(status, _)| status == 200)
}
