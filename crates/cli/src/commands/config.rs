//! `frazil config`: check, show and explain the configuration of a server.

mod check;
mod example;
mod show;
mod toml_text;

use crate::args::ConfigCommand;
use crate::output::Failure;

pub(crate) fn run(command: &ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check(args) => check::run(args),
        ConfigCommand::Show(args) => show::run(args),
        ConfigCommand::Example(args) => example::run(args),
    }
}
