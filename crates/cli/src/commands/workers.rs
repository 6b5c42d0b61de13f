//! `frazil workers`: who holds what.

mod ls;
mod pool;
mod repair;
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
        WorkersCommand::Repair(args) => runtime.block_on(repair::run(args)),
    }
}
