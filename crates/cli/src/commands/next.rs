//! `frazil next`: print new Ids.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use frazil::coord::keeper::{LeaseState, LeaseStatus, Refusal, Waiting};
use frazil::coord::time::unix_ms;
use frazil::{Node, NotIssued};
use frazil_id::{Batch, Format, Generator, Id, NotReady, StartError};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::place;
use crate::args::NextArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::progress;

/// Ids issued in one go: a tick of the default layout, so that a slow reader makes no stale Ids.
const BATCH: u64 = 4096;
/// Ticks longer than this make a user wonder whether anything happens.
const QUIET_TICK_MS: u32 = 1000;

pub(crate) fn run(args: &NextArgs) -> Result<(), Failure> {
    let layout = &args.layout.layout;
    if layout.tick_ms() > QUIET_TICK_MS {
        let seconds = layout.tick_ms() / 1000;
        say(format_args!("waiting for the next tick of the layout, up to {seconds} s"));
    }
    match args.worker {
        Some(worker) => {
            let ids = Generator::system(layout, worker)?;
            print(args, |n| Ok(ids.batch(n)?))
        }
        None => with_lease(args),
    }
}

/// Leases a worker, prints, and releases it whatever happens.
fn with_lease(args: &NextArgs) -> Result<(), Failure> {
    let runtime = place::runtime()?;
    let node = runtime.block_on(start(args))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    runtime.spawn(note_signals(interrupted.clone()));
    runtime.spawn(report(node.watch()));
    // A batch of one tick is granted at once, or waited for.
    let most = u32::try_from(args.layout.layout.ids_per_tick()).unwrap_or(u32::MAX);
    let printed = print(args, |n| {
        // Relaxed: a flag that stands for itself.
        if interrupted.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        runtime.block_on(node.batch(n.min(most))).map_err(|why| ended(&node, why))
    });
    runtime.block_on(node.shutdown());
    printed
}

async fn start(args: &NextArgs) -> Result<Node, Failure> {
    let mut builder = Node::builder()
        .store_url(args.place.url()?)
        .namespace(args.place.namespace.clone())
        .layout(args.layout.layout);
    if let Some((first, last)) = args.workers.workers {
        builder = builder.workers(first..=last);
    }
    let told = Cell::new(false);
    let tell = |state: &LeaseState| {
        if let LeaseState::Seeking(waiting) = state
            && let Some(message) = message(waiting)
            && !told.replace(true)
        {
            say(message);
        }
    };
    Ok(builder.start_watched(tell).await?)
}

/// What a user is told who waits.
fn message(waiting: &Waiting) -> Option<String> {
    match waiting {
        Waiting::Answer => None,
        Waiting::Quarantine { until } => {
            let seconds = until.saturating_sub(unix_ms()).div_ceil(1000);
            Some(format!(
                "waiting {seconds} s: the namespace is new or in quarantine, and whoever still uses \
                 it may speak up (a namespace known to be new: frazil store init)"
            ))
        }
        other => Some(format!("waiting for {other}")),
    }
}

/// Tells when the lease is in trouble, for how long Ids go on, and when it is well again.
async fn report(mut statuses: watch::Receiver<Vec<LeaseStatus>>) {
    let mut troubled = false;
    while statuses.changed().await.is_ok() {
        let Some(status) = statuses.borrow_and_update().first().cloned() else { return };
        match status.state {
            LeaseState::Held if troubled => say("the lease is renewed again"),
            LeaseState::Unrenewed | LeaseState::Replacing(..) | LeaseState::Distrusted { .. }
                if !troubled =>
            {
                let seconds = status.left(unix_ms()).as_secs();
                say(format_args!("{}; Ids go on for {seconds} s", described(&status)));
            }
            _ => {}
        }
        troubled = !matches!(status.state, LeaseState::Held);
    }
}

/// Why no more Ids come: the lease knows more than the generator.
fn ended(node: &Node, why: NotIssued) -> Failure {
    let lanes = node.info().lanes;
    match (&why, lanes.first()) {
        (NotIssued::NotReady(NotReady::Horizon { .. }), Some(lane)) => {
            let why = described(&lane.status);
            Failure::new(Exit::Unavailable, format_args!("the lease was not extended: {why}"))
        }
        _ => why.into(),
    }
}

fn described(status: &LeaseStatus) -> String {
    match &status.trouble {
        Some(trouble) => format!("{}: {trouble}", status.state),
        None => status.state.to_string(),
    }
}

async fn note_signals(interrupted: Arc<AtomicBool>) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    interrupted.store(true, Ordering::Relaxed);
}

/// Prints as many Ids as asked for, from batches of at most as many as `take` is asked for.
fn print(args: &NextArgs, take: impl Fn(u32) -> Result<Batch, Failure>) -> Result<(), Failure> {
    let bar = progress::ids(args.count);
    let mut data = Data::new();
    let mut missing = args.count;
    let outcome = loop {
        if missing == 0 {
            break Ok(());
        }
        let batch = match take(u32::try_from(missing.min(BATCH)).expect("a batch is small")) {
            Ok(batch) => batch,
            Err(failure) => break Err(failure),
        };
        for id in &batch {
            if args.json {
                data.json(&Issued::new(id, args.format.format))?;
            } else {
                data.line(id.text(args.format.format).as_bytes())?;
            }
        }
        missing -= batch.len() as u64;
        bar.inc(batch.len() as u64);
    };
    bar.finish_and_clear();
    data.flush()?;
    outcome
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

impl From<NotIssued> for Failure {
    fn from(why: NotIssued) -> Self {
        Self::new(Exit::Refused, why)
    }
}

impl From<frazil::StartError> for Failure {
    fn from(error: frazil::StartError) -> Self {
        use frazil::StartError as Start;
        match error {
            Start::Options(error) => error.into(),
            Start::Store(error) | Start::Refused(Refusal::Store(error)) => error.into(),
            Start::Refused(refusal) => Self::new(Exit::Refused, refusal),
            Start::NoWorker(Waiting::Quarantine { .. } | Waiting::Clock { .. }) => {
                Self::new(Exit::Refused, error)
            }
            Start::NoWorker(_) | Start::Thread(_) => Self::new(Exit::Unavailable, error),
            _ => Self::usage(error),
        }
    }
}
