//! `storm`: real `frazil` processes and real stores under faults, and an exact check of every ID.
//!
//! It links no code of the server: what it knows of a node is what any client sees. The one library of
//! the product that it runs itself is `frazil-election`, in processes of their own (`jobs_node`).

mod args;
mod availability;
mod checker;
mod clock;
mod history;
mod http;
mod jobs_node;
mod load;
mod logs;
mod naive;
mod node;
mod register;
mod report;
mod resp;
mod scenario;
mod scenarios;
mod socket;
mod stage;
mod store;
mod suite;
mod timestamp;
mod traps;
mod verdict;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use args::{Command, RunArgs, StormCommand};
use suite::{Run, tell};

fn main() -> ExitCode {
    let command = Command::parse();
    let result = match &command.command {
        StormCommand::List => Ok(list()),
        StormCommand::Run(args) => run(args),
        StormCommand::Score(args) => suite::score(args),
        StormCommand::Smoke(args) => suite::smoke(args),
        StormCommand::Hunt(args) => suite::hunt(args),
        StormCommand::Soak(args) => suite::soak(args),
        StormCommand::Writer { register } => register::write_on(*register).map(|()| true),
        StormCommand::JobsNode(args) => jobs_node::run(args).map(|()| true),
        StormCommand::NaiveNode { redis, listen, ttl_ms } => {
            naive::run(redis, *listen, Duration::from_millis(*ttl_ms), 1).map(|()| true)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            tell(&format!("storm: {error}"));
            ExitCode::from(2)
        }
    }
}

fn list() -> bool {
    for row in scenario::ALL {
        let stores: Vec<_> = row.stores.iter().map(ToString::to_string).collect();
        tell(&format!("{:<4}  {:<36} {}", row.id, row.title, stores.join(" ")));
    }
    for mutant_trap in traps::HUNTS {
        tell(&format!(
            "E01   {:<36} {} ({})",
            mutant_trap.mutant, mutant_trap.store, mutant_trap.trap.title
        ));
    }
    true
}

fn run(args: &RunArgs) -> io::Result<bool> {
    let row = scenario::named(&args.scenario).map_err(io::Error::other)?;
    if !row.stores.contains(&args.store) {
        return Err(io::Error::other(format!("{} is not for {}", row.id, args.store)));
    }
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let mutant = args.mutant.clone();
    let run = Run { row, store: args.store, seed, scale: args.scale, mutant };
    let report = run.play(&args.place.frazil, &args.place.out)?;
    tell(&report.page());
    Ok(report.passes)
}
