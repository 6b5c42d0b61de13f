//! The `frazil` command.
//!
//! stdout is data only; everything else goes to stderr. Exit codes: see [`output::Exit`].

mod args;
mod commands;
mod config;
mod log;
#[cfg(feature = "mutants")]
mod mutant;
#[cfg(not(feature = "mutants"))]
#[path = "mutant/none.rs"]
mod mutant;
mod output;
mod progress;
mod remote;
mod words;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Gives back what a crowd of clients made it take, which the system's own does not.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let command = config::parse_command_line().command;
    let outcome = mutant::check().and_then(|()| commands::run(command));
    output::finish(outcome)
}
