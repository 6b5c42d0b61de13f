//! E10: leaders are killed, stopped, frozen and cut off, and write to a register all the while.
//!
//! Five `frazil elect` processes run `storm writer` while they lead. Only what was frozen as a whole
//! (candidate, guard and command) may write after its time, and is refused by its token; whoever is
//! merely stopped or cut off has its command killed by the guard before anybody else leads, so that no
//! two processes believe in their leadership at a time.
//!
//! A leader that was lost is replaced after the TTL and the lock delay. On files the kernel knows who
//! is there: a candidate that is stopped leads on, and nobody replaces it.

mod candidate_set;
mod oracle;

use std::io;
use std::time::Duration;

use frazil_rig::wait_until;

use crate::checker::Counts;
use crate::clock;
use crate::register::{Register, Rule, Writer};
use crate::scenario::{Play, Scenario};
use crate::stage::{Fault, Outcomes, Plan};
use crate::store::{Kind, Setting, Store};
use crate::verdict::Verdict;
use candidate_set::{CandidateSet, PausedProcesses, is_stopped};
use oracle::Frozen;

/// One each three seconds, for two minutes.
const CYCLES: u32 = 40;
const EVERY: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(40);
/// Who wrote this long ago leads.
const FRESH: Duration = Duration::from_millis(300);
/// A mutant of the rig and not of `frazil`: a register without a fence, to see that what is looked for
/// would be found.
pub(crate) const BLIND_REGISTER: &str = "blind-register";

pub(crate) const ROW: Scenario =
    Scenario { id: "E10", title: "a fenced leader", stores: &Kind::ALL, play: Play::Own(run) };

/// What is done to a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    /// Everything of it stops, as a machine does that sleeps.
    Freeze,
    Kill,
    CutOff,
    /// The candidate alone is stopped.
    Stop,
    Terminate,
}

impl FaultKind {
    const ALL: [Self; 5] = [Self::CutOff, Self::Freeze, Self::Kill, Self::Stop, Self::Terminate];

    /// Those that a store knows: nobody can be cut off from files.
    fn of(kind: Kind) -> &'static [Self] {
        &Self::ALL[usize::from(kind == Kind::File)..]
    }
}

fn run(plan: &Plan) -> io::Result<Outcomes> {
    let is_blind = plan.mutant.as_deref() == Some(BLIND_REGISTER);
    let rule = if is_blind { Rule::Blind } else { Rule::Fenced };
    let store = Store::start(plan.store, Setting::One)?;
    let register = Register::start(rule)?;
    let candidate_set = CandidateSet::start(plan, &store, register.address)?;
    let mut play = Experiment {
        random: fastrand::Rng::with_seed(plan.seed),
        kind: plan.store,
        candidate_set,
        register,
        verdict: Verdict::default(),
        faults: Vec::new(),
        frozen: Vec::new(),
        slowest: Duration::ZERO,
        seen_stopped: 0,
    };
    let began = clock::now();
    // Each kind of fault at least once.
    let cycles = plan.cycles(CYCLES).max(5);
    let mut fault_kinds = Vec::new();
    for _ in 0..cycles {
        if fault_kinds.is_empty() {
            fault_kinds = FaultKind::of(plan.store).to_vec();
            play.random.shuffle(&mut fault_kinds);
        }
        let fault_kind = fault_kinds.pop().unwrap_or(FaultKind::Kill);
        play.cycle(fault_kind)?;
    }
    Ok(play.end((clock::now() - began).as_secs_f64()))
}

/// Everything that runs.
struct Experiment {
    random: fastrand::Rng,
    kind: Kind,
    candidate_set: CandidateSet,
    register: Register,
    verdict: Verdict,
    faults: Vec<Fault>,
    frozen: Vec<Frozen>,
    slowest: Duration,
    seen_stopped: u64,
}

impl Experiment {
    /// Does something to a candidate, and waits until somebody leads again. Each kind of fault meets the leader
    /// first; after that it may be another candidate.
    fn cycle(&mut self, fault_kind: FaultKind) -> io::Result<()> {
        let leader = self.leader()?;
        let may_be_other =
            self.faults.len() >= FaultKind::ALL.len() && fault_kind != FaultKind::Freeze;
        let is_other = may_be_other && self.random.u8(0..5) == 0;
        let victim = match is_other {
            true => self.random.usize(0..self.candidate_set.len()),
            false => self.candidate_set.number(&leader.instance)?,
        };
        let hits_leader = self.candidate_set.number(&leader.instance)? == victim;
        let (begin, begin_unix) = (clock::now(), clock::unix());
        let paused = self.inject(fault_kind, victim, &leader)?;
        let stays =
            self.kind == Kind::File && matches!(fault_kind, FaultKind::Stop | FaultKind::Freeze);
        if hits_leader && !stays {
            let took = self.replaced(&leader, begin_unix)?;
            self.slowest = self.slowest.max(took);
        }
        let rest = EVERY.saturating_sub(clock::now() - begin);
        self.candidate_set.attend(rest)?;
        self.repair(victim, &leader, paused)?;
        let what = format!("{fault_kind:?}");
        self.faults.push(Fault { what, node: Some(victim), begin, end: clock::now() });
        Ok(())
    }

    /// Waits until somebody leads.
    fn leader(&mut self) -> io::Result<Writer> {
        let (mut leader, mut trouble) = (None, None);
        wait_until("a leader", LIMIT, || {
            trouble = self.candidate_set.supervise().err();
            leader = self.register.ledger().leader(FRESH).cloned();
            leader.is_some() || trouble.is_some()
        })?;
        trouble.map_or(Ok(()), Err)?;
        leader.ok_or_else(|| io::Error::other("nobody leads"))
    }

    fn inject(
        &mut self,
        fault_kind: FaultKind,
        victim: usize,
        leader: &Writer,
    ) -> io::Result<Option<PausedProcesses>> {
        let candidate = &self.candidate_set.candidates[victim];
        let own = candidate.daemon.id();
        match fault_kind {
            FaultKind::Kill => candidate.daemon.kill(),
            FaultKind::Terminate => candidate.daemon.terminate()?,
            // Files are reached without a network.
            FaultKind::CutOff => {
                if let Some(proxy) = &candidate.link.proxy {
                    proxy.black_hole();
                }
            }
            FaultKind::Stop => {
                let paused = PausedProcesses::of(own.into_iter().collect())?;
                self.seen_stopped += u64::from(own.is_some_and(is_stopped));
                return Ok(Some(paused));
            }
            FaultKind::Freeze => {
                // From here on it cannot know.
                let begin = clock::unix();
                let all = [Some(leader.process), Some(leader.parent), own];
                let paused = PausedProcesses::of(all.into_iter().flatten().collect())?;
                self.frozen.push(Frozen { process: leader.process, begin });
                self.seen_stopped += u64::from(is_stopped(leader.process));
                return Ok(Some(paused));
            }
        }
        Ok(None)
    }

    /// Waits until somebody else writes; how long that took.
    fn replaced(&mut self, leader: &Writer, since: Duration) -> io::Result<Duration> {
        let (mut at, mut trouble) = (None, None);
        wait_until("another leader", LIMIT, || {
            trouble = self.candidate_set.supervise().err();
            at = self.register.ledger().successor(leader.process, since);
            at.is_some() || trouble.is_some()
        })?;
        trouble.map_or(Ok(()), Err)?;
        Ok(at.unwrap_or(since).saturating_sub(since))
    }

    /// Ends a fault. Of what was frozen the command wakes up first: it then has its moment.
    fn repair(
        &mut self,
        victim: usize,
        leader: &Writer,
        paused: Option<PausedProcesses>,
    ) -> io::Result<()> {
        if let Some(proxy) = &self.candidate_set.candidates[victim].link.proxy {
            proxy.heal();
        }
        if let Some(mut paused) = paused {
            if paused.wake(leader.process)? {
                let before = self.register.ledger().attempts(leader.process);
                wait_until("the command to go on", LIMIT, || {
                    let ledger = self.register.ledger();
                    ledger.attempts(leader.process) > before + 1
                })?;
            }
            paused.end()?;
        }
        self.candidate_set.supervise()
    }

    fn end(self, seconds: f64) -> Outcomes {
        let Self {
            candidate_set,
            register,
            mut verdict,
            faults,
            frozen,
            slowest,
            seen_stopped,
            kind,
            ..
        } = self;
        let lost = candidate_set.lost();
        drop(candidate_set);
        let seen = oracle::check(&register.ledger(), &frozen, &mut verdict);
        let is_server = kind != Kind::File;
        let fault_kinds = faults.len() as u64;
        verdict.guard("writes", seen.accepted, 100 * fault_kinds);
        verdict.guard("leaders", seen.leaders, 1 + fault_kinds / if is_server { 2 } else { 4 });
        verdict.guard("processes seen stopped", seen_stopped, 2);
        verdict.guard("stale writes refused", seen.refused, u64::from(is_server));
        verdict.guard("leaderships that ended as lost", lost, u64::from(is_server));
        let allowed = candidate_set::TTL + candidate_set::LOCK_DELAY + Duration::from_secs(1);
        verdict.bar("slowest fail-over", slowest, allowed);
        verdict.note("writes refused", seen.refused);
        let (counts, refused) = (Counts::default(), [("stale".to_owned(), seen.refused)].into());
        Outcomes { counts, refused, faults, seconds, verdict, ..Outcomes::default() }
    }
}
