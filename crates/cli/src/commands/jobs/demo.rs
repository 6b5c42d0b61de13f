//! `frazil jobs demo`: jobs that move through a rolling restart.

mod draw;
mod headless;
mod journal;
mod live;
mod report;
mod stage;

use std::time::Duration;

use frazil::coord::StoreUrl;
use frazil::election::{Settings, store_url};
use tempfile::TempDir;

use self::stage::Plan;
use super::sample::shared;
use crate::args::JobsDemoArgs;
use crate::commands::place;
use crate::output::{Exit, Failure};

/// Somebody who watches shall see each restart on its own.
const REST: Duration = Duration::from_millis(1200);

pub(super) fn run(args: &JobsDemoArgs) -> Result<(), Failure> {
    let (url, scratch) = store(args)?;
    let plan = Plan {
        url: store_url(&url, Settings::default().ttl),
        namespace: args.place.namespace.clone(),
        app: args.app.clone(),
        nodes: usize::try_from(args.nodes).expect("there are few"),
        jobs: usize::try_from(args.jobs).expect("there are few"),
        rest: if args.headless { Duration::ZERO } else { REST },
    };
    let runtime = place::runtime()?;
    let outcome = match args.headless {
        true => runtime.block_on(headless::run(plan, args)),
        false => runtime.block_on(live::run(plan, args.duration)),
    };
    // What still waits for keys or the kernel is left alone.
    runtime.shutdown_background();
    drop(scratch);
    outcome
}

/// The store that was named, or a temporary one.
fn store(args: &JobsDemoArgs) -> Result<(StoreUrl, Option<TempDir>), Failure> {
    if args.place.named().is_some() {
        return Ok((shared(args.place.url()?)?, None));
    }
    let made = tempfile::Builder::new().prefix("frazil-demo-").tempdir();
    let scratch = made.map_err(|error| {
        Failure::new(Exit::Unavailable, format_args!("no temporary directory: {error}"))
    })?;
    let path = scratch.path().join("store");
    Ok((StoreUrl::file(path.to_string_lossy()), Some(scratch)))
}
