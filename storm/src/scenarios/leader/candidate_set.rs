//! The candidates of an election: real `frazil elect` processes that are started again when they end.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use frazil_rig::{Daemon, Recipe, wait_until};

use crate::clock;
use crate::stage::Plan;
use crate::store::{Link, Store};

pub(super) const TTL: Duration = Duration::from_secs(1);
pub(super) const LOCK_DELAY: Duration = Duration::from_millis(500);
const CANDIDATES: usize = 5;
/// More than a signal takes on a busy machine.
const STOPS: Duration = Duration::from_secs(10);
/// How `frazil elect` ends when its leadership is lost.
const LOST: i32 = 75;

/// One candidate, and its way to the store.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) daemon: Daemon,
    pub(super) link: Link,
}

/// All of them.
#[derive(Debug)]
pub(super) struct CandidateSet {
    pub(super) candidates: Vec<Candidate>,
    lost: u64,
}

impl CandidateSet {
    pub(super) fn start(plan: &Plan, store: &Store, register: SocketAddr) -> io::Result<Self> {
        let mut candidates = Vec::new();
        for number in 0..CANDIDATES {
            let link = store.link()?;
            let daemon = Daemon::new(recipe(plan, number, &link.url, register)?);
            daemon.launch()?;
            candidates.push(Candidate { daemon, link });
        }
        Ok(Self { candidates, lost: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.candidates.len()
    }

    /// How many leaderships ended because they were lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Which candidate has a name.
    pub(super) fn number(&self, instance: &str) -> io::Result<usize> {
        let number = instance.strip_prefix("candidate-").and_then(|text| text.parse().ok());
        let known = number.filter(|number| *number < self.len());
        known.ok_or_else(|| io::Error::other(format!("no candidate {instance}")))
    }

    /// Starts again whoever has ended.
    pub(super) fn supervise(&mut self) -> io::Result<()> {
        for candidate in &self.candidates {
            if let Some(status) = candidate.daemon.ended()? {
                self.lost += u64::from(status.code() == Some(LOST));
                candidate.daemon.kill();
            }
            // Nothing happens to one that runs, or is stopped.
            candidate.daemon.launch()?;
        }
        Ok(())
    }

    /// Lets time pass.
    pub(super) fn attend(&mut self, time: Duration) -> io::Result<()> {
        let end = clock::now() + time;
        while clock::now() < end {
            self.supervise()?;
            clock::rest(end.saturating_sub(clock::now()).min(Duration::from_millis(50)));
        }
        Ok(())
    }
}

fn recipe(plan: &Plan, number: usize, url: &str, register: SocketAddr) -> io::Result<Recipe> {
    let ms = |time: Duration| format!("{}ms", time.as_millis());
    let mut arguments: Vec<OsString> =
        ["elect", "storm", "--store", url, "--ttl"].map(Into::into).into();
    arguments.extend([ms(TTL).into(), "--lock-delay".into(), ms(LOCK_DELAY).into()]);
    arguments.extend(["--instance".into(), format!("candidate-{number}").into(), "--".into()]);
    arguments.extend([std::env::current_exe()?.into(), "writer".into(), "--register".into()]);
    arguments.push(register.to_string().into());
    let of_frazil = plan.mutant.iter().filter(|mutant| *mutant != super::BLIND_REGISTER);
    let mutant = of_frazil.map(|mutant| ("STORM_MUTANT".into(), mutant.into()));
    Ok(Recipe {
        program: plan.frazil.clone(),
        arguments,
        environment: mutant.collect(),
        log: plan.directory.join(format!("candidate-{number}.log")),
        // It listens nowhere.
        port: 0,
    })
}

/// Processes that are stopped. However this ends, they go on.
#[derive(Debug)]
pub(super) struct PausedProcesses {
    processes: Vec<u32>,
}

impl PausedProcesses {
    pub(super) fn of(processes: Vec<u32>) -> io::Result<Self> {
        let paused = Self { processes };
        signal("-STOP", &paused.processes)?;
        // The signal is sent before it has an effect.
        wait_until("processes to stop", STOPS, || {
            paused.processes.iter().all(|process| is_stopped(*process) || is_gone(*process))
        })?;
        Ok(paused)
    }

    /// Lets one of them go on, if it is one of them.
    pub(super) fn wake(&mut self, process: u32) -> io::Result<bool> {
        let before = self.processes.len();
        self.processes.retain(|one| *one != process);
        if self.processes.len() == before {
            return Ok(false);
        }
        signal("-CONT", &[process]).map(|()| true)
    }

    /// Lets all of them go on.
    pub(super) fn end(mut self) -> io::Result<()> {
        signal("-CONT", &std::mem::take(&mut self.processes))
    }
}

impl Drop for PausedProcesses {
    fn drop(&mut self) {
        // Nothing can be done about a failure here.
        let _ = signal("-CONT", &self.processes);
    }
}

/// Whether the kernel shows a process as stopped.
pub(super) fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

fn is_gone(process: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{process}")).exists()
}

fn signal(signal: &str, processes: &[u32]) -> io::Result<()> {
    for process in processes {
        let output = Command::new("kill").args([signal, &process.to_string()]).output()?;
        // One that has been killed meanwhile needs no signal.
        if !output.status.success() && !is_gone(*process) {
            return Err(io::Error::other(format!("kill {signal} {process}: {output:?}")));
        }
    }
    Ok(())
}
