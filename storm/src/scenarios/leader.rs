//! E10: leaders are killed, stopped, frozen and cut off, and write to a register all the while.
//!
//! Five `frazil elect` processes run `storm writer` while they lead. Only what was frozen as a whole
//! (candidate, guard and command) may write after its time, and is refused by its token; whoever is
//! merely stopped or cut off has its command killed by the guard before anybody else leads, so that no
//! two processes believe in their leadership at a time.
//!
//! A leader that was lost is replaced after the TTL and the lock delay. On files the kernel knows who
//! is there: a candidate that is stopped leads on, and nobody replaces it.

mod company;
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
use company::{Company, Halt, is_stopped};
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
enum Blow {
    /// Everything of it stops, as a machine does that sleeps.
    Freeze,
    Kill,
    CutOff,
    /// The candidate alone is stopped.
    Stop,
    Terminate,
}

impl Blow {
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
    let company = Company::start(plan, &store, register.address)?;
    let mut play = Drama {
        random: fastrand::Rng::with_seed(plan.seed),
        kind: plan.store,
        company,
        register,
        verdict: Verdict::default(),
        faults: Vec::new(),
        frozen: Vec::new(),
        slowest: Duration::ZERO,
        seen_stopped: 0,
    };
    let began = clock::now();
    // Each blow at least once.
    let cycles = plan.cycles(CYCLES).max(5);
    let mut blows = Vec::new();
    for _ in 0..cycles {
        if blows.is_empty() {
            blows = Blow::of(plan.store).to_vec();
            play.random.shuffle(&mut blows);
        }
        let blow = blows.pop().unwrap_or(Blow::Kill);
        play.cycle(blow)?;
    }
    Ok(play.end((clock::now() - began).as_secs_f64()))
}

/// Everything that runs.
struct Drama {
    random: fastrand::Rng,
    kind: Kind,
    company: Company,
    register: Register,
    verdict: Verdict,
    faults: Vec<Fault>,
    frozen: Vec<Frozen>,
    slowest: Duration,
    seen_stopped: u64,
}

impl Drama {
    /// Does something to a candidate, and waits until somebody leads again. Each blow meets the leader
    /// first; after that it may be another candidate.
    fn cycle(&mut self, blow: Blow) -> io::Result<()> {
        let leader = self.leader()?;
        let may_be_other = self.faults.len() >= Blow::ALL.len() && blow != Blow::Freeze;
        let is_other = may_be_other && self.random.u8(0..5) == 0;
        let victim = match is_other {
            true => self.random.usize(0..self.company.len()),
            false => self.company.number(&leader.instance)?,
        };
        let hits_leader = self.company.number(&leader.instance)? == victim;
        let (begin, begin_unix) = (clock::now(), clock::unix());
        let halt = self.strike(blow, victim, &leader)?;
        let stays = self.kind == Kind::File && matches!(blow, Blow::Stop | Blow::Freeze);
        if hits_leader && !stays {
            let took = self.replaced(&leader, begin_unix)?;
            self.slowest = self.slowest.max(took);
        }
        let rest = EVERY.saturating_sub(clock::now() - begin);
        self.company.attend(rest)?;
        self.heal(victim, &leader, halt)?;
        let what = format!("{blow:?}");
        self.faults.push(Fault { what, node: Some(victim), begin, end: clock::now() });
        Ok(())
    }

    /// Waits until somebody leads.
    fn leader(&mut self) -> io::Result<Writer> {
        let (mut leader, mut trouble) = (None, None);
        wait_until("a leader", LIMIT, || {
            trouble = self.company.supervise().err();
            leader = self.register.ledger().leader(FRESH).cloned();
            leader.is_some() || trouble.is_some()
        })?;
        trouble.map_or(Ok(()), Err)?;
        leader.ok_or_else(|| io::Error::other("nobody leads"))
    }

    fn strike(&mut self, blow: Blow, victim: usize, leader: &Writer) -> io::Result<Option<Halt>> {
        let candidate = &self.company.candidates[victim];
        let own = candidate.daemon.id();
        match blow {
            Blow::Kill => candidate.daemon.kill(),
            Blow::Terminate => candidate.daemon.terminate()?,
            // Files are reached without a network.
            Blow::CutOff => {
                if let Some(proxy) = &candidate.link.proxy {
                    proxy.black_hole();
                }
            }
            Blow::Stop => {
                let halt = Halt::of(own.into_iter().collect())?;
                self.seen_stopped += u64::from(own.is_some_and(is_stopped));
                return Ok(Some(halt));
            }
            Blow::Freeze => {
                // From here on it cannot know.
                let begin = clock::unix();
                let all = [Some(leader.process), Some(leader.parent), own];
                let halt = Halt::of(all.into_iter().flatten().collect())?;
                self.frozen.push(Frozen { process: leader.process, begin });
                self.seen_stopped += u64::from(is_stopped(leader.process));
                return Ok(Some(halt));
            }
        }
        Ok(None)
    }

    /// Waits until somebody else writes; how long that took.
    fn replaced(&mut self, leader: &Writer, since: Duration) -> io::Result<Duration> {
        let (mut at, mut trouble) = (None, None);
        wait_until("another leader", LIMIT, || {
            trouble = self.company.supervise().err();
            at = self.register.ledger().successor(leader.process, since);
            at.is_some() || trouble.is_some()
        })?;
        trouble.map_or(Ok(()), Err)?;
        Ok(at.unwrap_or(since).saturating_sub(since))
    }

    /// Ends a fault. Of what was frozen the command wakes up first: it then has its moment.
    fn heal(&mut self, victim: usize, leader: &Writer, halt: Option<Halt>) -> io::Result<()> {
        if let Some(proxy) = &self.company.candidates[victim].link.proxy {
            proxy.heal();
        }
        if let Some(mut halt) = halt {
            if halt.wake(leader.process)? {
                let before = self.register.ledger().attempts(leader.process);
                wait_until("the command to go on", LIMIT, || {
                    let ledger = self.register.ledger();
                    ledger.attempts(leader.process) > before + 1
                })?;
            }
            halt.end()?;
        }
        self.company.supervise()
    }

    fn end(self, seconds: f64) -> Outcomes {
        let Self {
            company,
            register,
            mut verdict,
            faults,
            frozen,
            slowest,
            seen_stopped,
            kind,
            ..
        } = self;
        let lost = company.lost();
        drop(company);
        let seen = oracle::check(&register.ledger(), &frozen, &mut verdict);
        let is_server = kind != Kind::File;
        let blows = faults.len() as u64;
        verdict.guard("writes", seen.accepted, 100 * blows);
        verdict.guard("leaders", seen.leaders, 1 + blows / if is_server { 2 } else { 4 });
        verdict.guard("processes seen stopped", seen_stopped, 2);
        verdict.guard("stale writes refused", seen.refused, u64::from(is_server));
        verdict.guard("leaderships that ended as lost", lost, u64::from(is_server));
        let allowed = company::TTL + company::LOCK_DELAY + Duration::from_secs(1);
        verdict.bar("slowest fail-over", slowest, allowed);
        verdict.note("writes refused", seen.refused);
        let (counts, refused) = (Counts::default(), [("stale".to_owned(), seen.refused)].into());
        Outcomes { counts, refused, faults, seconds, verdict, ..Outcomes::default() }
    }
}
