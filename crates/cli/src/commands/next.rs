//! `frazil next`: print new IDs.

mod lease;
mod remote;
mod shortage;

use std::cell::Cell;
use std::time::Duration;

use frazil_id::{Format, Generator, Id, Layout, NotReady, rfc3339};
use serde::Serialize;

use crate::args::NextArgs;
use crate::output::{Data, Failure, say};
use crate::progress;

/// IDs issued in one go: a tick of the default layout, so that a slow reader makes no stale IDs.
const BATCH: u64 = 4096;
/// A wait that is longer than this makes a user wonder whether anything happens.
const QUIET: Duration = Duration::from_secs(1);

/// IDs that were issued together.
struct Issue {
    ids: Vec<Id>,
    /// Of the lease that they were issued under, if there is one.
    token: Option<String>,
}

pub(crate) fn run(args: &NextArgs) -> Result<(), Failure> {
    if let Some(server) = &args.server.server {
        return remote::run(args, server);
    }
    if let Some(scope) = &args.scope {
        return Err(Failure::usage(format_args!(
            "the scope {scope} is issued by servers: name one with --server (or FRAZIL_SERVER)"
        )));
    }
    let Some(worker) = args.worker else { return lease::run(args) };
    if args.place.named().is_some() {
        return Err(Failure::usage(
            "--worker uses no store: leave out --store and unset FRAZIL_STORE, or leave out \
             --worker and unset FRAZIL_WORKER",
        ));
    }
    let ids = Generator::system(&args.layout.layout, worker)?;
    let told = Cell::new(false);
    print(args, &args.layout.layout, |n| {
        let batch = match ids.try_batch(n) {
            Ok(batch) => batch,
            Err(why) => {
                tell_of_long_wait(&why, &told);
                ids.batch(n)?
            }
        };
        Ok(Issue { ids: batch.iter().collect(), token: None })
    })
}

/// Says once that the next ID is some seconds away, where ticks are that long.
fn tell_of_long_wait(why: &NotReady, told: &Cell<bool>) {
    let Some(left) = why.retry_after().filter(|left| *left > QUIET && why.is_brief()) else {
        return;
    };
    if !told.replace(true) {
        let seconds = left.as_secs_f64().ceil();
        say(format_args!("waiting {seconds} s for the next tick of the layout"));
    }
}

/// Prints as many IDs as asked for, from batches of at most as many as `take` is asked for.
fn print(
    args: &NextArgs,
    layout: &Layout,
    take: impl Fn(u32) -> Result<Issue, Failure>,
) -> Result<(), Failure> {
    let bar = progress::ids(args.count);
    let mut data = Data::new();
    let mut missing = args.count;
    let outcome = loop {
        if missing == 0 {
            break Ok(());
        }
        let issue = match take(u32::try_from(missing.min(BATCH)).expect("a batch is small")) {
            Ok(issue) => issue,
            Err(failure) => break Err(failure),
        };
        for id in &issue.ids {
            if args.json {
                let token = issue.token.as_deref();
                data.json(&Issued::new(*id, args.format.format, layout, token)?)?;
            } else {
                data.line(id.text(args.format.format).as_bytes())?;
            }
        }
        missing -= issue.ids.len() as u64;
        bar.inc(issue.ids.len() as u64);
    };
    bar.finish_and_clear();
    data.flush()?;
    outcome
}

/// One object of `--json`; the names are those of `decode --json`.
#[derive(Serialize)]
struct Issued<'a> {
    id: String,
    time: String,
    worker: u64,
    /// A string: tokens exceed what a JSON number holds everywhere.
    token: Option<&'a str>,
}

impl<'a> Issued<'a> {
    fn new(
        id: Id,
        format: Format,
        layout: &Layout,
        token: Option<&'a str>,
    ) -> Result<Self, Failure> {
        let parts = id.parts(layout).map_err(Failure::usage)?;
        let unix_ms = layout.unix_ms(parts.tick).cast_signed();
        Ok(Self {
            id: id.text(format).to_string(),
            time: rfc3339::Instant::from_unix_ms(unix_ms).to_string(),
            worker: parts.worker,
            token,
        })
    }
}
