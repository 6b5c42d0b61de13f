//! `frazil man`: manual pages.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::args::{Args, ManArgs};
use crate::output::{Data, Exit, Failure, say};

pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    if let Some(dir) = &args.dir {
        return write_all(dir);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Args::command()).render(&mut page)?;
    let mut data = Data::new();
    data.write(&page)?;
    data.flush()
}

fn write_all(dir: &Path) -> Result<(), Failure> {
    let written = fs::create_dir_all(dir).and_then(|()| {
        let root = Args::command().disable_help_subcommand(true);
        clap_mangen::generate_to(root, dir)
    });
    written.map_err(|error| {
        let dir = dir.display();
        Failure::new(Exit::Unavailable, format_args!("no pages can be written to {dir}: {error}"))
    })?;
    say(format_args!("wrote the manual pages to {}", dir.display()));
    Ok(())
}
