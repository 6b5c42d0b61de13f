//! `frazil config check`: everything that is wrong, at once.

use crate::args::ConfigCheckArgs;
use crate::config::{self, Files, Wrong};
use crate::output::{Data, Exit, Failure, say};

pub(super) fn run(args: &ConfigCheckArgs) -> Result<(), Failure> {
    let files = if args.offline { Files::Ignore } else { Files::Look };
    let problems = match config::load(&args.serve, files) {
        Ok(_) => {
            say("ok");
            return Ok(());
        }
        Err(Wrong::Problems(problems)) => problems,
        Err(wrong) => return Err(wrong.into()),
    };
    let mut data = Data::new();
    for problem in &problems {
        match args.json {
            true => data.json(&problem.object())?,
            false => say(problem),
        }
    }
    data.flush()?;
    Err(Failure::Reported(Exit::No))
}
