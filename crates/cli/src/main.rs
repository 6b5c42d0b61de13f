//! The `frazil` command.
//!
//! stdout is data only; everything else goes to stderr. Exit codes: see [`output::Exit`].

mod args;
mod commands;
mod config;
mod contexts;
mod locked_file;
mod log;
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
    let outcome = config::parse_command_line().and_then(|args| commands::run(args.command));
    output::finish(outcome)
}
