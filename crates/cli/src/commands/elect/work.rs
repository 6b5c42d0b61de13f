//! The elected command, before it is that.
//!
//! The guard kills the command's process group, but cannot do so when it is killed itself together
//! with `frazil elect`. So the kernel kills the command when its guard ends. A process can ask for
//! that for itself alone, and it goes on to hold for what the process becomes.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::guard::unguarded;
use crate::args::ElectWorkArgs;
use crate::output::{Exit, Failure};

/// Returns only if the command cannot be run.
pub(super) fn run(args: &ElectWorkArgs) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(unguarded)?;
    // Whoever was killed before that sends nothing any more.
    if getppid() != Pid::from_raw(args.parent) {
        return Err(Failure::usage("elect-work is a part of frazil elect: run that"));
    }
    let (program, arguments) = args.command.split_first().expect("the parser asks for one");
    let error = Command::new(program).args(arguments).exec();
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        _ => Exit::NotRunnable,
    };
    let program = program.to_string_lossy();
    Err(Failure::new(exit, format_args!("{program:?} cannot be run: {error}")))
}
