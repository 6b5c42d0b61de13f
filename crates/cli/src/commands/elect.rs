//! `frazil elect`: run a command while leader, or watch who leads.

mod campaign;
mod candidacy;
mod deadline;
mod forget;
mod guard;
mod ls;
mod observe;
mod reach;
mod signals;
mod terms;
mod ward;
mod work;

use super::place;
use crate::args::{ElectArgs, ElectCommand, ElectGuardArgs, ElectRunArgs, ElectWorkArgs};
use crate::output::{Exit, Failure};

pub(crate) use self::signals::Signals;
use self::terms::Terms;

/// Elections of servers among themselves: whoever took part would have to do what they do.
const RESERVED: &str = "frazil:";

pub(crate) fn run(args: &ElectArgs) -> Result<(), Failure> {
    match &args.verb {
        None => elect(&args.run),
        Some(ElectCommand::Run(args)) => elect(args),
        Some(ElectCommand::Ls(args)) => place::runtime()?.block_on(ls::run(args)),
        Some(ElectCommand::Forget(args)) => place::runtime()?.block_on(forget::run(args)),
    }
}

fn elect(args: &ElectRunArgs) -> Result<(), Failure> {
    let terms = Terms::of(args)?;
    if !args.command.is_empty() && terms.name.starts_with(RESERVED) {
        let why = format!("names that begin with {RESERVED:?} are Frazil's own: use another");
        return Err(Failure::usage(why));
    }
    // One thread, the first of the process: the guard of the command dies with the thread that
    // started it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, format_args!("no runtime: {error}")))?;
    let outcome = match args.command.is_empty() {
        true => runtime.block_on(observe::run(args, &terms)),
        false => runtime.block_on(campaign::run(args, &terms)),
    };
    // What still waits for the kernel or the store is left alone.
    runtime.shutdown_background();
    outcome
}

/// The hidden command between `frazil elect` and the command that it runs.
pub(crate) fn guard(args: &ElectGuardArgs) -> Result<(), Failure> {
    guard::run(args)
}

/// The hidden command that becomes the one that is run.
pub(crate) fn work(args: &ElectWorkArgs) -> Result<(), Failure> {
    work::run(args)
}
