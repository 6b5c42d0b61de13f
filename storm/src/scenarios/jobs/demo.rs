//! `frazil jobs demo` while its store fails.
//!
//! What can be done from outside is done to the store (stopped, killed, out of reach) and to the process
//! as a whole (stopped for less than the TTL, which is 10 s there). That a job of one node runs nowhere
//! else is seen by the demonstration, which knows when work starts and stops.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use frazil_rig::{Daemon, Recipe, wait_until};

use super::JOBS;
use super::report::{self, Report};
use crate::clock;
use crate::stage::{Fault, Plan};
use crate::store::{self, Kind, Link, Store};
use crate::verdict::Verdict;

/// In two minutes.
const CYCLES: u32 = 20;
/// Of the demonstration: not to be set.
const TTL: Duration = Duration::from_secs(10);
const LOCK_DELAY: Duration = Duration::from_secs(1);
/// Between two faults, and how long each lasts: leaderships outlive it.
const QUIET: (u64, u64) = (1500, 3500);
const LASTS: (u64, u64) = (500, 2000);
const LIMIT: Duration = Duration::from_secs(240);

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    StopNodes,
    StopStore,
    KillStore,
    CutOff,
}

impl FaultKind {
    const ALL: [Self; 4] = [Self::StopNodes, Self::StopStore, Self::KillStore, Self::CutOff];

    fn of(kind: Kind) -> &'static [Self] {
        if kind == Kind::File { &Self::ALL[..1] } else { &Self::ALL }
    }
}

/// Restarts all nodes while nothing fails.
pub(super) fn quiet(plan: &Plan, store: &Store, verdict: &mut Verdict) -> io::Result<()> {
    let demo = Demo::start(plan, store, "quiet", None)?;
    let report = demo.end()?;
    report::check(&report, JOBS, verdict);
    verdict.bar("p99 of a hand-over, quiet", report.p99, Duration::from_millis(300));
    verdict.guard("jobs that moved, quiet", report.moves, JOBS);
    Ok(())
}

/// Restarts them again and again while things fail.
pub(super) fn stormy(plan: &Plan, store: &Store, verdict: &mut Verdict) -> io::Result<Vec<Fault>> {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let cycles = plan.cycles(CYCLES).max(4);
    let time = |random: &mut fastrand::Rng, (least, most): (u64, u64)| {
        Duration::from_millis(random.u64(least..=most))
    };
    let lasts = Duration::from_millis((QUIET.1 + LASTS.1) * u64::from(cycles));
    let demo = Demo::start(plan, store, "stormy", Some(lasts))?;
    let (mut faults, mut fault_kinds, mut seen) = (Vec::new(), Vec::new(), 0);
    for _ in 0..cycles {
        clock::rest(time(&mut random, QUIET));
        if fault_kinds.is_empty() {
            fault_kinds = FaultKind::of(plan.store).to_vec();
            random.shuffle(&mut fault_kinds);
        }
        let (fault_kind, begin) = (fault_kinds.pop().unwrap_or(FaultKind::StopNodes), clock::now());
        seen += u64::from(inject(fault_kind, &demo, store, time(&mut random, LASTS))?);
        let what = format!("{fault_kind:?}");
        faults.push(Fault { what, node: None, begin, end: clock::now() });
    }
    let report = demo.end()?;
    report::check(&report, JOBS, verdict);
    verdict.bar("longest hand-over", report.longest, TTL + LOCK_DELAY + Duration::from_secs(1));
    verdict.guard("jobs that moved", report.moves, JOBS);
    verdict.guard("faults that were seen", seen, u64::from(cycles));
    Ok(faults)
}

/// Does something for a while; whether it was seen by somebody else.
fn inject(fault_kind: FaultKind, demo: &Demo, store: &Store, lasts: Duration) -> io::Result<bool> {
    let server = || store.daemon().ok_or_else(|| io::Error::other("no server"));
    match fault_kind {
        FaultKind::StopNodes => {
            demo.daemon.pause()?;
            let is_seen = demo.daemon.id().is_some_and(is_stopped);
            clock::rest(lasts);
            demo.daemon.resume()?;
            Ok(is_seen)
        }
        FaultKind::StopStore => {
            server()?.pause()?;
            let is_seen = server()?.id().is_some_and(is_stopped);
            clock::rest(lasts);
            server()?.resume()?;
            Ok(is_seen)
        }
        FaultKind::KillStore => {
            let before = server()?.id();
            store.restart()?;
            Ok(server()?.id() != before)
        }
        FaultKind::CutOff => {
            let proxy = demo.link.proxy.as_ref();
            let proxy = proxy.ok_or_else(|| io::Error::other("no network to cut"))?;
            proxy.black_hole();
            let before = proxy.bytes_up();
            clock::rest(lasts);
            let is_seen = proxy.bytes_up() == before;
            proxy.heal();
            Ok(is_seen)
        }
    }
}

/// Whether the kernel shows a process as stopped.
pub(super) fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// A demonstration that runs.
struct Demo {
    daemon: Daemon,
    link: Link,
    log: PathBuf,
}

impl Demo {
    fn start(plan: &Plan, store: &Store, app: &str, lasts: Option<Duration>) -> io::Result<Self> {
        let mut link = store.link()?;
        link.url = store::with_long_session(&link.url);
        let log = plan.directory.join(format!("{app}-{}.log", plan.seed));
        // What an earlier run of the same seed has said is not of this one.
        let _ = std::fs::remove_file(&log);
        let mut arguments: Vec<OsString> =
            ["jobs", "demo", "--headless", "--app", app, "--store", &link.url]
                .map(Into::into)
                .into();
        arguments.extend(["--jobs".into(), JOBS.to_string().into()]);
        if let Some(lasts) = lasts {
            arguments.extend(["--duration".into(), format!("{}ms", lasts.as_millis()).into()]);
        }
        let mutant = plan.mutant.iter().map(|mutant| ("STORM_MUTANT".into(), mutant.into()));
        let environment = mutant.collect();
        // It listens nowhere.
        let recipe = Recipe {
            program: plan.frazil.clone(),
            arguments,
            environment,
            log: log.clone(),
            port: 0,
        };
        let daemon = Daemon::new(recipe);
        daemon.launch()?;
        Ok(Self { daemon, link, log })
    }

    /// Waits for its end, which comes after the restart that it is at; what it has said.
    fn end(self) -> io::Result<Report> {
        wait_until("the demonstration to end", LIMIT, || !matches!(self.daemon.ended(), Ok(None)))?;
        report::read(&std::fs::read_to_string(&self.log)?)
    }
}
