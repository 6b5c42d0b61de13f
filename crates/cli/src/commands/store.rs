//! `frazil store`: a namespace's records.

mod export;
mod forget_replica;
mod import;
mod init;
mod new_meta;
mod quarantine;
mod repair;
mod show;
mod wrong_times;

use super::place;
use crate::args::StoreCommand;
use crate::output::Failure;

pub(crate) fn run(command: &StoreCommand) -> Result<(), Failure> {
    let runtime = place::runtime()?;
    match command {
        StoreCommand::Init(args) => runtime.block_on(init::run(args)),
        StoreCommand::Show(args) => runtime.block_on(show::run(args)),
        StoreCommand::Export(args) => runtime.block_on(export::run(args)),
        StoreCommand::Import(args) => runtime.block_on(import::run(args)),
        StoreCommand::Quarantine(args) => runtime.block_on(quarantine::run(args)),
        StoreCommand::Repair(args) if args.wrong_times => runtime.block_on(wrong_times::run(args)),
        StoreCommand::Repair(args) => runtime.block_on(repair::run(args)),
        StoreCommand::ForgetReplica(args) => runtime.block_on(forget_replica::run(args)),
    }
}
