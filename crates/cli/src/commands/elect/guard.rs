//! The process between `frazil elect` and the command that it runs.
//!
//! It leads the process group of the command. If `frazil elect` is killed, the kernel tells it, and
//! it kills the whole group, itself included. If `frazil elect` is stopped or hangs, it does the same
//! when the time has passed until which the command may run. If it is killed itself, `frazil elect` kills
//! the group; if both are, the kernel kills the command: see [`work`](mod@super::work).

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use rustix::process::{
    Pid, Signal, getpgrp, getppid, kill_process_group, set_parent_process_death_signal,
};
use tokio::signal::unix::SignalKind;

use super::deadline::DeadlineReader;
use super::signals::{Signals, catch};
use super::ward::{OURSELVES, code_of};
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

/// Starts the command in the group of this process. It dies with the thread that this runs on, which
/// is the only one.
fn start(args: &ElectGuardArgs) -> Result<Child, Failure> {
    let mut command = Command::new(OURSELVES);
    command.arg0("frazil").arg("elect-work");
    command.arg("--parent").arg(std::process::id().to_string());
    command.arg("--").args(&args.command).spawn().map_err(unguarded)
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

pub(super) fn unguarded(error: impl Into<io::Error>) -> Failure {
    let error = error.into();
    Failure::new(Exit::Unavailable, format_args!("the command cannot be guarded: {error}"))
}
