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

use super::place;
use crate::args::WorkersCommand;
use crate::output::Failure;

pub(crate) fn run(command: &WorkersCommand) -> Result<(), Failure> {
    let runtime = place::runtime()?;
    match command {
        WorkersCommand::Ls(args) => runtime.block_on(ls::run(args)),
        WorkersCommand::Watch(args) => runtime.block_on(watch::run(args)),
        WorkersCommand::Drain(args) => runtime.block_on(drain::run(args)),
        WorkersCommand::Rotate(args) => runtime.block_on(rotate::run(args)),
        WorkersCommand::Release(args) => runtime.block_on(rotate::release(args)),
        WorkersCommand::Repair(args) => runtime.block_on(repair::run(args)),
    }
}
