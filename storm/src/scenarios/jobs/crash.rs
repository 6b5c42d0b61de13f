//! Workers that are killed, frozen and cut off, and leave and join.

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use super::oracle::{self, Frozen};
use super::steps::{ProcessRun, Tenure};
use super::worker_set::{LOCK_DELAY, TTL, WORKERS, WorkerSet};
use super::{IMBALANCE_MAX, JOBS};
use crate::clock;
use crate::stage::{Fault, Plan};
use crate::store::{Kind, Store};
use crate::verdict::Verdict;

/// In two minutes, with the others.
const CYCLES: u32 = 20;
const LIMIT: Duration = Duration::from_secs(40);
/// How long loads may be uneven.
const EVENS_OUT: Duration = Duration::from_secs(30);
/// How much longer than it takes the others a worker is frozen.
const LONGER_MS: u64 = 500;
/// A worker that wakes up late ends what it runs within this.
const COMES_TO_ITSELF: Duration = Duration::from_secs(1);
/// How a node ends that was asked to by SIGTERM.
const IN_ORDER: i32 = 0;

/// Who has fewer jobs is left alone: little would be seen. One has more than its share always.
const HELD_MIN: u64 = 3;

/// What is done to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    Kill,
    /// For longer than its leaderships last.
    Freeze,
    /// SIGTERM: it gives its jobs back.
    Leave,
    CutOff,
}

impl FaultKind {
    const ALL: [Self; 4] = [Self::Kill, Self::Freeze, Self::Leave, Self::CutOff];

    /// Those that a store knows: nobody can be cut off from files.
    fn of(kind: Kind) -> &'static [Self] {
        if kind == Kind::File { &Self::ALL[..3] } else { &Self::ALL }
    }
}

/// How it ended.
pub(super) struct Crashes {
    pub(super) faults: Vec<Fault>,
    /// Late writes.
    pub(super) refused: u64,
}

pub(super) fn play(plan: &Plan, store: &Store, verdict: &mut Verdict) -> io::Result<Crashes> {
    let mut play = Experiment {
        random: fastrand::Rng::with_seed(plan.seed),
        kind: plan.store,
        worker_set: WorkerSet::start(plan, store)?,
        verdict,
        faults: Vec::new(),
        frozen: Vec::new(),
        strikes: 0,
        seen: 0,
        cut: Vec::new(),
        lost: 0,
        slowest: Duration::ZERO,
        handed_over: Vec::new(),
        slowest_end: Duration::ZERO,
    };
    play.settle()?;
    let mut fault_kinds = Vec::new();
    // Each kind of fault at least once.
    for _ in 0..plan.cycles(CYCLES).max(4) {
        if fault_kinds.is_empty() {
            fault_kinds = FaultKind::of(plan.store).to_vec();
            play.random.shuffle(&mut fault_kinds);
        }
        let fault_kind = fault_kinds.pop().unwrap_or(FaultKind::Kill);
        play.cycle(fault_kind)?;
    }
    Ok(play.end())
}

/// Everything that runs.
struct Experiment<'a> {
    random: fastrand::Rng,
    kind: Kind,
    worker_set: WorkerSet,
    verdict: &'a mut Verdict,
    faults: Vec<Fault>,
    frozen: Vec<Frozen>,
    strikes: u64,
    /// Those that the kernel or the proxy shows.
    seen: u64,
    /// Who is cut off, and the bytes that came from there until then.
    cut: Vec<(usize, u64)>,
    /// Jobs whose worker was lost.
    lost: u64,
    slowest: Duration,
    /// How long jobs were without a node that were given back.
    handed_over: Vec<Duration>,
    slowest_end: Duration,
}

impl Experiment<'_> {
    /// Does something to one or two workers, and waits until all jobs run again.
    fn cycle(&mut self, fault_kind: FaultKind) -> io::Result<()> {
        if fault_kind == FaultKind::Leave {
            // How long a hand-over may take is said of a node with its share, not with all jobs.
            self.until("even loads", is_even)?;
        }
        // Jobs may still be on their way to those who joined.
        let loads = loads(&self.worker_set);
        let mut victims: Vec<usize> = (0..WORKERS).filter(|of| loads[*of] >= HELD_MIN).collect();
        self.random.shuffle(&mut victims);
        // Whoever leaves with another may be handed what that one has.
        victims.truncate(if fault_kind == FaultKind::Leave { 1 } else { self.random.usize(1..=2) });
        let process_runs: Vec<ProcessRun> = self
            .worker_set
            .process_runs()
            .into_iter()
            .filter(|process_run| victims.contains(&process_run.worker))
            .collect();
        let held: Vec<Tenure> =
            self.worker_set.history.running(&process_runs).into_values().collect();
        let begin = clock::now();
        for victim in &victims {
            self.inject(fault_kind, *victim)?;
        }
        match fault_kind {
            FaultKind::Freeze => {
                // All that they said before.
                self.worker_set.listen(self.verdict)?;
                let last = |process_run: &ProcessRun| {
                    self.worker_set.history.last.get(process_run).copied()
                };
                let frozen = process_runs
                    .iter()
                    .filter_map(|process_run| Some((*process_run, last(process_run)?)));
                self.frozen.extend(frozen.map(|(process_run, last)| Frozen { process_run, last }));
                self.while_frozen(&victims, &held, begin)?;
            }
            FaultKind::Kill | FaultKind::CutOff => self.replaced(&held, begin)?,
            FaultKind::Leave => self.left(victims[0], &held)?,
        }
        self.repair(fault_kind, &victims)?;
        self.settle()?;
        let what = format!("{fault_kind:?} of a worker");
        self.faults.push(Fault { what, node: Some(victims[0]), begin, end: clock::now() });
        Ok(())
    }

    fn inject(&mut self, fault_kind: FaultKind, victim: usize) -> io::Result<()> {
        let worker = &self.worker_set.workers[victim];
        let process = worker.daemon.id().ok_or_else(|| io::Error::other("a worker is gone"))?;
        self.strikes += 1;
        self.seen += u64::from(match fault_kind {
            FaultKind::Kill => {
                worker.daemon.kill();
                !std::path::Path::new(&format!("/proc/{process}")).exists()
            }
            FaultKind::Freeze => {
                worker.daemon.pause()?;
                super::demo::is_stopped(process)
            }
            // Seen when it has ended.
            FaultKind::Leave => {
                worker.daemon.terminate()?;
                false
            }
            // Seen when it is over.
            FaultKind::CutOff => {
                let proxy = worker.link.proxy.as_ref();
                let proxy = proxy.ok_or_else(|| io::Error::other("no network to cut"))?;
                proxy.black_hole();
                self.cut.push((victim, proxy.bytes_up()));
                false
            }
        });
        Ok(())
    }

    /// Waits until somebody else runs what was lost.
    fn replaced(&mut self, lost: &[Tenure], begin: Duration) -> io::Result<()> {
        self.until("lost jobs to run elsewhere", |worker_set| {
            lost.iter().all(|tenure| worker_set.history.successor(tenure).is_some())
        })?;
        self.lost += lost.len() as u64;
        self.slowest = self.slowest.max(clock::now() - begin);
        Ok(())
    }

    /// Lets frozen workers go on when others have their jobs, and waits until they know.
    fn while_frozen(
        &mut self,
        victims: &[usize],
        lost: &[Tenure],
        begin: Duration,
    ) -> io::Result<()> {
        // On files the kernel knows that they are there.
        let stays = self.kind == Kind::File;
        match stays {
            true => clock::rest(TTL + LOCK_DELAY),
            false => self.replaced(lost, begin)?,
        }
        clock::rest(Duration::from_millis(self.random.u64(0..=LONGER_MS)));
        let awake = clock::now();
        for victim in victims {
            self.worker_set.workers[*victim].daemon.resume()?;
        }
        if !stays {
            self.until("the view of a worker to end that was frozen", |worker_set| {
                lost.iter().all(|tenure| worker_set.history.has_stopped(tenure))
            })?;
            self.slowest_end = self.slowest_end.max(clock::now() - awake);
        }
        Ok(())
    }

    /// Waits until a worker has ended and others have what it gave back.
    fn left(&mut self, victim: usize, held: &[Tenure]) -> io::Result<()> {
        let mut status = None;
        self.until("a worker to end", |worker_set| {
            status = worker_set.workers[victim].daemon.ended().ok().flatten();
            status.is_some()
        })?;
        self.seen += u64::from(status.is_some_and(|status| status.code() == Some(IN_ORDER)));
        self.until("jobs that were given back to run elsewhere", |worker_set| {
            held.iter().all(|tenure| worker_set.history.successor(tenure).is_some())
        })?;
        let history = &self.worker_set.history;
        let gap = |tenure: &Tenure| {
            let stopped = history.works.get(tenure)?.stopped?;
            history.successor(tenure)?.checked_sub(stopped)
        };
        self.handed_over.extend(held.iter().filter_map(gap));
        Ok(())
    }

    fn repair(&mut self, fault_kind: FaultKind, victims: &[usize]) -> io::Result<()> {
        for victim in victims {
            let worker = &self.worker_set.workers[*victim];
            match fault_kind {
                FaultKind::Freeze => {}
                FaultKind::CutOff => {
                    let Some(proxy) = &worker.link.proxy else { continue };
                    let is_same = |cut: &(usize, u64)| *cut == (*victim, proxy.bytes_up());
                    self.seen += u64::from(self.cut.iter().any(is_same));
                    self.cut.retain(|(cut, _)| cut != victim);
                    proxy.heal();
                }
                FaultKind::Kill => worker.daemon.launch()?,
                FaultKind::Leave => {
                    worker.daemon.kill();
                    worker.daemon.launch()?;
                }
            }
        }
        Ok(())
    }

    /// Waits until all workers are up, and every job runs.
    fn settle(&mut self) -> io::Result<()> {
        self.until("every job to run", |worker_set| {
            worker_set.process_runs().len() == WORKERS
                && loads(worker_set).iter().sum::<u64>() == JOBS
        })?;
        for worker in &self.worker_set.workers {
            if let Some(status) = worker.daemon.ended()? {
                return Err(io::Error::other(format!("a worker ended by itself: {status}")));
            }
        }
        Ok(())
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&WorkerSet) -> bool) -> io::Result<()> {
        let mut trouble = None;
        wait_until(what, LIMIT, || {
            trouble = self.worker_set.listen(self.verdict).err();
            trouble.is_some() || is_so(&self.worker_set)
        })?;
        trouble.map_or(Ok(()), Err)
    }

    fn end(mut self) -> Crashes {
        let begin = clock::now();
        let evened = self.until("even loads", is_even);
        let even_after = clock::now() - begin;
        self.verdict.hold("loads are even", evened.is_ok(), || {
            format!("the workers have {:?} jobs: {evened:?}", loads(&self.worker_set))
        });
        let Self { worker_set, verdict, faults, frozen, seen, lost, kind, .. } = self;
        let WorkerSet { history, reads, .. } = &worker_set;
        let is_server = kind != Kind::File;
        let what = oracle::check(history, &frozen, verdict);
        verdict.guard("blows to workers that were seen", seen, self.strikes);
        verdict.guard("jobs that were lost with a worker", lost, HELD_MIN);
        verdict.guard("jobs that a worker gave back", self.handed_over.len() as u64, 1);
        verdict.guard("leaderships of jobs", what.tenures, JOBS + lost);
        verdict.guard("fenced writes", what.accepted, 10 * JOBS);
        verdict.guard("files read", *reads, 10 * JOBS);
        verdict.guard("late writes refused", what.refused, u64::from(is_server));
        let allowed = TTL + LOCK_DELAY + Duration::from_secs(1);
        verdict.bar("lost jobs run elsewhere", self.slowest, allowed);
        verdict.bar("a frozen worker comes to itself", self.slowest_end, COMES_TO_ITSELF);
        verdict.bar("jobs run evenly again", even_after, EVENS_OUT);
        self.handed_over.sort_unstable();
        let p99 = (self.handed_over.len() * 99).div_ceil(100).saturating_sub(1);
        let p99 = self.handed_over.get(p99).copied().unwrap_or_default();
        verdict.bar("p99 of a hand-over by a worker that leaves", p99, Duration::from_millis(300));
        verdict.note("late writes refused", what.refused);
        Crashes { faults, refused: what.refused }
    }
}

fn loads(worker_set: &WorkerSet) -> Vec<u64> {
    let running = worker_set.history.running(&worker_set.process_runs());
    let of = |worker| {
        running.values().filter(|tenure| tenure.process_run.worker == worker).count() as u64
    };
    (0..WORKERS).map(of).collect()
}

/// Every job runs, and no worker has many more than another.
fn is_even(worker_set: &WorkerSet) -> bool {
    let loads = loads(worker_set);
    let least = loads.iter().min().copied().unwrap_or_default();
    let most = loads.iter().max().copied().unwrap_or_default();
    loads.iter().sum::<u64>() == JOBS && most - least <= IMBALANCE_MAX
}
