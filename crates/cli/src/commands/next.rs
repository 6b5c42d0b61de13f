//! `frazil next`: print new Ids.

use frazil_id::{Format, Generator, Id, NotReady, StartError};
use serde::Serialize;

use crate::args::NextArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::progress;

/// Ids issued in one go: a tick of the default layout, so that a slow reader makes no stale Ids.
const BATCH: u64 = 4096;
/// Ticks longer than this make a user wonder whether anything happens.
const QUIET_TICK_MS: u32 = 1000;

pub(crate) fn run(args: &NextArgs) -> Result<(), Failure> {
    let ids = Generator::system(&args.layout.layout, args.worker)?;
    if args.layout.layout.tick_ms() > QUIET_TICK_MS {
        let seconds = args.layout.layout.tick_ms() / 1000;
        say(format_args!("waiting for the next tick of the layout, up to {seconds} s"));
    }
    let bar = progress::ids(args.count);
    let mut data = Data::new();
    let mut missing = args.count;
    while missing > 0 {
        let n = missing.min(BATCH);
        let batch = ids.batch(u32::try_from(n).expect("a batch is small"))?;
        for id in &batch {
            if args.json {
                data.json(&Issued::new(id, args.format.format))?;
            } else {
                data.line(id.text(args.format.format).as_bytes())?;
            }
        }
        missing -= n;
        bar.inc(n);
    }
    bar.finish_and_clear();
    data.flush()
}

#[derive(Serialize)]
struct Issued {
    id: String,
}

impl Issued {
    fn new(id: Id, format: Format) -> Self {
        Self { id: id.text(format).to_string() }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Clock(why) => why.into(),
            StartError::LifetimeTooShort { .. } => Self::new(Exit::Refused, error),
            _ => Self::usage(error),
        }
    }
}

impl From<NotReady> for Failure {
    fn from(why: NotReady) -> Self {
        Self::new(Exit::Refused, why)
    }
}
