//! The `frazil` command.
//!
//! stdout is data only; everything else goes to stderr. Exit codes: see [`output::Exit`].

mod args;
mod commands;
mod output;
mod progress;
mod remote;
mod words;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let outcome = commands::run(args::Args::parse().command);
    output::finish(outcome)
}
