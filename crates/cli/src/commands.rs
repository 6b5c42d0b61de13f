//! One file for each command.

mod audit;
mod bench;
mod completions;
mod config;
mod context;
mod decode;
mod doctor;
mod elect;
mod encode;
mod errors;
mod help;
mod jobs;
mod key;
mod layout;
mod man;
mod next;
mod place;
mod serve;
mod settle;
mod store;
mod workers;

use crate::args::Command;
use crate::output::Failure;

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(&args),
        Command::Config(command) => config::run(&command),
        Command::Context(command) => context::run(&command),
        Command::Next(args) => next::run(&args),
        Command::Decode(args) => decode::run(&args),
        Command::Encode(args) => encode::run(&args),
        Command::Layout(args) => layout::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Workers(command) => workers::run(&command),
        Command::Store(command) => store::run(&command),
        Command::Key(command) => key::run(&command),
        Command::Elect(args) => elect::run(&args),
        Command::ElectGuard(args) => elect::guard(&args),
        Command::ElectWork(args) => elect::work(&args),
        Command::Jobs(command) => jobs::run(&command),
        Command::Doctor(args) => doctor::run(&args),
        Command::Errors(args) => errors::run(&args),
        Command::Help(args) => help::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
