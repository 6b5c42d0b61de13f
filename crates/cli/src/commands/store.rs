//! `frazil store`: a namespace's records.

mod export;
mod forget_replica;
mod import;
mod init;
mod quarantine;
mod repair;
mod show;
mod wrong_times;

use super::place::{self, Running};
use crate::args::StoreCommand;
use crate::output::Failure;

pub(crate) fn run(command: &StoreCommand) -> Result<(), Failure> {
    let run: Running<'_> = match command {
        StoreCommand::Init(args) => Box::pin(init::run(args)),
        StoreCommand::Show(args) => Box::pin(show::run(args)),
        StoreCommand::Export(args) => Box::pin(export::run(args)),
        StoreCommand::Import(args) => Box::pin(import::run(args)),
        StoreCommand::Quarantine(args) => Box::pin(quarantine::run(args)),
        StoreCommand::Repair(args) if args.wrong_times => Box::pin(wrong_times::run(args)),
        StoreCommand::Repair(args) => Box::pin(repair::run(args)),
        StoreCommand::ForgetReplica(args) => Box::pin(forget_replica::run(args)),
    };
    place::runtime()?.block_on(run)
}
