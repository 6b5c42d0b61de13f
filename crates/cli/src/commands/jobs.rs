//! `frazil jobs`: which job runs where.

mod demo;
mod ls;

use super::place;
use crate::args::JobsCommand;
use crate::output::Failure;

pub(crate) fn run(command: &JobsCommand) -> Result<(), Failure> {
    match command {
        JobsCommand::Ls(args) => place::runtime()?.block_on(ls::run(args)),
        JobsCommand::Demo(args) => demo::run(args),
    }
}
