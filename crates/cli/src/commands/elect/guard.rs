//! The process between `frazil elect` and the command that it runs.
//!
//! It leads the process group of the command. If `frazil elect` is killed, the kernel tells it, and
//! it kills the whole group, itself included. If `frazil elect` is stopped or hangs, it does the same
//! when the time has passed until which the command may run.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use frazil::coord::time::boot_time;
use rustix::process::{
    Pid, Signal, getpgrp, getppid, kill_process_group, set_parent_process_death_signal,
};
use tokio::signal::unix::SignalKind;

use super::deadline::DeadlineReader;
use super::signals::{Signals, catch};
use super::ward::code_of;
use crate::args::ElectGuardArgs;
use crate::output::{Exit, Failure, say};

/// The longest pause between two looks at the deadline: timers stand still while the machine sleeps,
/// and deadlines do not.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(super) fn run(args: &ElectGuardArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, format_args!("no runtime: {error}")))?;
    runtime.block_on(guard(args))
}

async fn guard(args: &ElectGuardArgs) -> Result<(), Failure> {
    // Before the kernel is asked to send it, and before there is a command.
    let mut orphaned = catch(SignalKind::user_defined2())?;
    let mut children = catch(SignalKind::child())?;
    // The command gets what is sent to its group by itself; the guard must outlive it.
    let mut signals = Signals::new()?;
    set_parent_process_death_signal(Some(Signal::USR2)).map_err(unguarded)?;
    if getppid() != Pid::from_raw(args.parent) {
        return Err(Failure::usage("elect-guard is a part of frazil elect: run that"));
    }
    let deadline = DeadlineReader::open(args.parent, args.deadline).map_err(unguarded)?;
    let mut child = start(args)?;
    loop {
        let left = match deadline.get() {
            Ok(Some(until)) => until.saturating_sub(boot_time()),
            Ok(None) => LOOK_AGAIN,
            // Without a deadline nobody can vouch for the command.
            Err(_) => Duration::ZERO,
        };
        if left.is_zero() {
            kill_all();
        }
        tokio::select! {
            biased;
            _ = orphaned.recv() => kill_all(),
            _ = children.recv() => {}
            _ = signals.next() => {}
            () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
        }
        if let Some(status) = ended(&mut child)? {
            return match code_of(status) {
                0 => Ok(()),
                code => Err(Failure::Ended(code)),
            };
        }
    }
}

fn start(args: &ElectGuardArgs) -> Result<Child, Failure> {
    let (program, arguments) = args.command.split_first().expect("the parser asks for one");
    // In the group of this process.
    Command::new(program).args(arguments).spawn().map_err(|error| {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::NotRunnable,
        };
        let program = program.to_string_lossy();
        Failure::new(exit, format_args!("{program:?} cannot be run: {error}"))
    })
}

fn ended(child: &mut Child) -> Result<Option<ExitStatus>, Failure> {
    child.try_wait().map_err(unguarded)
}

/// Ends the command, whatever it has started in its group, and this process.
fn kill_all() {
    if let Err(error) = kill_process_group(getpgrp(), Signal::KILL) {
        say(format_args!("the command cannot be killed: {error}"));
    }
}

fn unguarded(error: impl Into<io::Error>) -> Failure {
    let error = error.into();
    Failure::new(Exit::Unavailable, format_args!("the command cannot be guarded: {error}"))
}
