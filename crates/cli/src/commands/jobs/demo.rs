//! `frazil jobs demo`: jobs that move through a rolling restart.

use std::io::{self, IsTerminal};
use std::time::Duration;

use frazil::coord::StoreUrl;
use frazil_demo::{Ended, Error, PhaseReport, Plan, measure};
use tempfile::TempDir;

use crate::args::JobsDemoArgs;
use crate::commands::elect::Signals;
use crate::commands::place;
use crate::output::{Data, Exit, Failure};

/// Somebody who watches shall see each restart on its own.
const REST: Duration = Duration::from_millis(1200);

pub(super) fn run(args: &JobsDemoArgs) -> Result<(), Failure> {
    let (url, scratch) = store(args)?;
    let plan = Plan {
        url,
        namespace: args.place.namespace.clone(),
        app: args.app.clone(),
        nodes: usize::try_from(args.nodes).expect("there are few"),
        jobs: usize::try_from(args.jobs).expect("there are few"),
        rest: if args.headless { Duration::ZERO } else { REST },
    };
    let runtime = place::runtime()?;
    let outcome = match args.headless {
        true => runtime.block_on(tell(plan, args.duration)),
        false => runtime.block_on(show(plan, args.duration)),
    };
    // What still waits for keys or the kernel is left alone.
    runtime.shutdown_background();
    drop(scratch);
    outcome
}

/// The store that was named, or a temporary one.
fn store(args: &JobsDemoArgs) -> Result<(StoreUrl, Option<TempDir>), Failure> {
    if args.place.named().is_some() {
        return Ok((args.place.url()?, None));
    }
    let made = tempfile::Builder::new().prefix("frazil-demo-").tempdir();
    let scratch = made.map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no temporary directory: {error}"))
    })?;
    let path = scratch.path().join("store");
    Ok((StoreUrl::file(path.to_string_lossy()), Some(scratch)))
}

/// Prints what became of each phase, and of all.
async fn tell(plan: Plan, duration: Option<Duration>) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let mut data = Data::new();
    let phase = |phase: &PhaseReport| {
        data.json(phase)?;
        data.flush()
    };
    match measure(plan, duration, signals.next(), phase).await? {
        Ended::Stopped(signal) => Err(Failure::Interrupted(signal)),
        Ended::Played(report) => {
            data.json(&report)?;
            data.flush()?;
            if report.is_well() { Ok(()) } else { Err(Failure::Reported(Exit::No)) }
        }
    }
}

/// Draws it.
async fn show(plan: Plan, duration: Option<Duration>) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("there is no terminal to draw on: use --headless"));
    }
    let mut signals = Signals::new()?;
    match frazil_demo::show(plan, duration, signals.next()).await? {
        Some(signal) => Err(Failure::Interrupted(signal)),
        None => Ok(()),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error.into(),
            Error::Terminal(error) => error.into(),
            error => Self::usage(error),
        }
    }
}
