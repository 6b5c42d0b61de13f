//! `frazil completions`: a script for a shell.

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::output::{Data, Failure};

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    // Into memory first: the generator panics when its writer fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "frazil", &mut script);
    let mut data = Data::new();
    data.write(&script)?;
    data.flush()
}
