//! E53: `frazil elect` is killed together with the process that guards its command. The command must
//! not outlive them: somebody else will lead.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use frazil_rig::{Daemon, Recipe, wait_until};

use crate::clock;
use crate::scenario::{Play, Scenario};
use crate::stage::{Fault, Outcomes, Plan};
use crate::store::{Kind, Setting, Store};
use crate::verdict::Verdict;

/// What the leader runs: it ends by itself some time after the row.
const COMMAND: [&str; 2] = ["sleep", "97"];
const LEADS: Duration = Duration::from_secs(30);
/// The kernel is quick.
const DIES: Duration = Duration::from_secs(3);
const CYCLES: u32 = 10;

pub(crate) const ROW: Scenario = Scenario {
    id: "E53",
    title: "a leader and its guard are killed",
    stores: &Kind::ALL,
    play: Play::Own(run),
};

fn run(plan: &Plan) -> io::Result<Outcomes> {
    let store = Store::start(plan.store, Setting::Plain)?;
    let began = clock::now();
    let (mut verdict, mut faults, mut slowest) = (Verdict::default(), Vec::new(), Duration::ZERO);
    let (cycles, mut unguarded) = (plan.cycles(CYCLES).max(2), 0);
    for cycle in 0..cycles {
        let daemon = Daemon::new(recipe(plan, &store, cycle));
        daemon.launch()?;
        let family = family(&daemon)?;
        let begin = clock::now();
        // Stopped first: neither sees the other's end.
        daemon.pause()?;
        family.guards.iter().try_for_each(|process| signal("-STOP", *process))?;
        family.guards.iter().try_for_each(|process| signal("-KILL", *process))?;
        daemon.kill();
        // Before anybody has looked after the command.
        unguarded += u64::from(family.guards.iter().all(|process| !runs(*process)));
        let is_gone = || !runs(family.command);
        let gone = wait_until("the command to end", DIES, is_gone);
        slowest = slowest.max(clock::now() - begin);
        verdict.hold("a command dies with its leader", gone.is_ok(), || {
            format!("{COMMAND:?} runs {DIES:?} after frazil elect and its guard were killed")
        });
        if gone.is_err() {
            signal("-KILL", family.command)?;
        }
        let what = format!("{} processes killed", 1 + family.guards.len());
        faults.push(Fault { what, node: None, begin, end: clock::now() });
    }
    verdict.bar("killed to the end of the command", slowest, DIES);
    verdict.guard("commands that were seen to run", faults.len() as u64, cycles.into());
    verdict.guard("commands whose guards were seen dead", unguarded, cycles.into());
    let seconds = (clock::now() - began).as_secs_f64();
    Ok(Outcomes { faults, seconds, verdict, ..Outcomes::default() })
}

/// What `frazil elect` has started.
#[derive(Debug)]
struct ProcessTree {
    /// All between it and the command.
    guards: Vec<u32>,
    command: u32,
}

/// Waits until the command runs.
fn family(daemon: &Daemon) -> io::Result<ProcessTree> {
    let mut found = None;
    wait_until("the command of a leader", LEADS, || {
        let all = daemon.id().map(descendants).unwrap_or_default();
        let command = all.iter().copied().find(|process| is_command(*process));
        found = command.map(|command| {
            let guards = all.iter().copied().filter(|process| *process != command).collect();
            ProcessTree { guards, command }
        });
        found.is_some()
    })?;
    found.ok_or_else(|| io::Error::other("no command"))
}

/// The children of a process, and theirs.
fn descendants(process: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<(u32, u32)> = names.filter_map(|id| Some((id, parent(id)?))).collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&of) = found.get(next) {
        found.extend(all.iter().filter(|(_, parent)| *parent == of).map(|(id, _)| *id));
        next += 1;
    }
    found.split_off(1)
}

fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

fn is_command(process: u32) -> bool {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0);
    words.next().is_some_and(|word| word.ends_with(COMMAND[0].as_bytes()))
        && words.next() == Some(COMMAND[1].as_bytes())
}

/// Whether it is there, and not merely unburied.
fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

fn signal(signal: &str, process: u32) -> io::Result<()> {
    let output = Command::new("kill").args([signal, &process.to_string()]).output()?;
    match output.status.success() || !runs(process) {
        true => Ok(()),
        false => Err(io::Error::other(format!("kill {signal} {process}: {output:?}"))),
    }
}

fn recipe(plan: &Plan, store: &Store, cycle: u32) -> Recipe {
    let election = format!("storm-{cycle}");
    let url = store.url();
    let words = ["elect", &election, "--store", &url, "--ttl", "10s", "--", COMMAND[0], COMMAND[1]];
    Recipe {
        program: plan.frazil.clone(),
        arguments: words.map(OsString::from).into(),
        environment: Vec::new(),
        log: plan.directory.join(format!("candidate-{cycle}.log")),
        // It listens nowhere.
        port: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_outlives_its_parents_is_seen() {
        let mut shell = Command::new("sh").args(["-c", "sleep 97 & wait"]).spawn().unwrap();
        let found = |shell: u32| descendants(shell).into_iter().find(|id| is_command(*id));
        wait_until("its child", Duration::from_secs(10), || found(shell.id()).is_some()).unwrap();
        let command = found(shell.id()).unwrap();
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(runs(command), "it has no reason to end");
        signal("-KILL", command).unwrap();
        wait_until("its end", Duration::from_secs(10), || !runs(command)).unwrap();
    }
}
