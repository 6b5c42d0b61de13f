//! Where a scenario is played: the store, the nodes, the clients, and the faults so far.

mod observe;
mod outcomes;
mod participants;
mod plan;

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::availability::{Availability, IdsInFault};
use crate::clock;
use crate::history::Outcome;
use crate::load::Load;
use crate::node::{Node, Program};
use crate::store::Store;
use crate::verdict::Verdict;

pub(crate) use self::outcomes::{Fault, Outcomes};
pub(crate) use self::participants::{Lease, Names, Namespace, Participants};
pub(crate) use self::plan::Plan;

/// How long a node may take until it issues, at the beginning or after a fault.
const ISSUES: Duration = Duration::from_secs(40);

/// Everything that runs.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(crate) random: fastrand::Rng,
    pub(crate) store: Store,
    pub(crate) lease: Lease,
    pub(crate) more_flags: Vec<String>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) load: Load,
    pub(crate) faults: Vec<Fault>,
    pub(crate) verdict: Verdict,
    pub(crate) began: Duration,
}

impl Stage {
    /// Starts the store and the nodes, waits until as many issue as there are workers for, and lets
    /// the clients loose.
    pub(crate) fn open(plan: &Plan, participants: &Participants) -> io::Result<Self> {
        std::fs::create_dir_all(&plan.directory)?;
        let store = Store::start(plan.store, participants.setting)?;
        let last = participants.workers.saturating_sub(1);
        let workers = format!("0-{last}");
        if participants.namespace == Namespace::Created {
            init_with(plan, &store, &workers, participants.window)?;
        }
        let mut nodes = Vec::new();
        for number in 0..participants.nodes {
            let name = match participants.names {
                Names::Different => format!("node-{number}"),
                Names::Same => "node".to_owned(),
            };
            let program = Program {
                frazil: plan.frazil.clone(),
                mutant: plan.mutant.clone(),
                flags: participants.flags(number, &workers),
                directory: plan.directory.clone(),
            };
            nodes.push(Node::new(number, &name, &program, store.link()?)?);
        }
        for (number, ms) in &participants.own_clocks {
            nodes[*number].set_off(*ms)?;
        }
        let early = participants.nodes.saturating_sub(participants.late);
        nodes[..early].iter().try_for_each(Node::launch)?;
        let enough = early.min(usize::try_from(participants.workers).unwrap_or(usize::MAX));
        wait_until("the nodes to issue", ISSUES, || {
            nodes.iter().filter(|node| is_ready(node)).count() >= enough
        })?;
        let doors: Vec<_> = nodes.iter().map(|node| Arc::clone(&node.endpoint)).collect();
        let load = Load::start(&doors, participants.pressure, plan.seed)?;
        let mut stage = Self {
            plan: plan.clone(),
            random: fastrand::Rng::with_seed(plan.seed),
            store,
            lease: participants.lease,
            more_flags: participants.more_flags.clone(),
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
    pub(crate) fn record_fault(
        &mut self,
        what: impl Into<String>,
        node: Option<usize>,
        begin: Duration,
    ) {
        self.faults.push(Fault { what: what.into(), node, begin, end: clock::now() });
    }

    /// The nodes that gave IDs within the last while.
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
    init_with(plan, store, workers, Participants::default().window)
}

fn init_with(plan: &Plan, store: &Store, workers: &str, window: Duration) -> io::Result<()> {
    let window = format!("{}s", window.as_secs());
    let output = Command::new(&plan.frazil)
        .args(["store", "init", "--store", &store.url(), "--workers", workers, "--window", &window])
        .output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("frazil store init: {output:?}"))),
    }
}

fn is_ready(node: &Node) -> bool {
    crate::http::ask_once(node.endpoint.address, "GET", "/readyz")
        .is_ok_and(|(status, _)| status == 200)
}
