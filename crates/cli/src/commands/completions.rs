//! `frazil completions`: a script for a shell.

use clap::{Command, CommandFactory};

use crate::args::{Args, CompletionsArgs};
use crate::output::{Data, Failure};

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    // Into memory first: the generator panics when its writer fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible(), "frazil", &mut script);
    let mut data = Data::new();
    data.write(&script)?;
    data.flush()
}

/// The command line without what only this program itself calls.
fn visible() -> Command {
    let whole = Args::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let version = whole.get_version().unwrap_or_default().to_owned();
    Command::new("frazil")
        .version(version)
        .propagate_version(true)
        .disable_help_subcommand(true)
        .subcommands(shown)
}
