//! `frazil workers`: who holds what, and letting go of it.

mod drain;
mod ls;
mod nodes;
mod pool;
mod repair;
mod rotate;
mod table;
mod view;
mod watch;

pub(super) use self::pool::Pool;
pub(super) use self::view::View;

use super::place::{self, Running};
use crate::args::WorkersCommand;
use crate::output::Failure;

pub(crate) fn run(command: &WorkersCommand) -> Result<(), Failure> {
    let run: Running<'_> = match command {
        WorkersCommand::Ls(args) => Box::pin(ls::run(args)),
        WorkersCommand::Watch(args) => Box::pin(watch::run(args)),
        WorkersCommand::Drain(args) => Box::pin(drain::run(args)),
        WorkersCommand::Rotate(args) => Box::pin(rotate::run(args)),
        WorkersCommand::Release(args) => Box::pin(rotate::release(args)),
        WorkersCommand::Repair(args) => Box::pin(repair::run(args)),
    };
    place::runtime()?.block_on(run)
}
