//! Issuing under a lease: it is taken, watched while IDs are printed, and given back.

use std::cell::Cell;
use std::convert::Infallible;
use std::time::Duration;

use frazil::coord::UnixMs;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::{LeaseState, LeaseStatus, Waiting};
use frazil::{Issued, Node, NotIssued, StartError};
use frazil_id::{Layout, NotReady};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::shortage::Shortage;
use super::{Issue, print, tell_of_long_wait};
use crate::args::NextArgs;
use crate::commands::place;
use crate::output::{Exit, Failure, Signal, say};
use crate::words::{instant, span};

/// Leases a worker, prints, and releases it whatever happens.
pub(super) fn run(args: &NextArgs) -> Result<(), Failure> {
    let runtime = place::runtime()?;
    let node = runtime.block_on(start(args))?;
    let (notify, signals) = watch::channel(None);
    runtime.spawn(note_signals(notify));
    runtime.spawn(report(node.watch()));
    let issuer = Issuer { runtime: &runtime, node: &node, signals, told: Cell::new(false) };
    let printed = print(args, &args.layout.layout, |n| issuer.take(args, n));
    runtime.block_on(node.shutdown());
    printed
}

/// Takes IDs from a node until a signal says not to.
struct Issuer<'a> {
    runtime: &'a Runtime,
    node: &'a Node,
    signals: watch::Receiver<Option<Signal>>,
    told: Cell<bool>,
}

impl Issuer<'_> {
    fn take(&self, args: &NextArgs, n: u32) -> Result<Issue, Failure> {
        // A batch of one tick is granted at once, or waited for.
        let most = u32::try_from(args.layout.layout.ids_per_tick()).unwrap_or(u32::MAX);
        let n = n.min(most);
        if let Some(signal) = *self.signals.borrow() {
            return Err(Failure::Interrupted(signal));
        }
        let issued = match self.node.try_issue(n) {
            Ok(issued) => issued,
            Err(why) => {
                if let NotIssued::NotReady(why) = &why {
                    tell_of_long_wait(why, &self.told);
                }
                self.wait_for(n)?
            }
        };
        Ok(Issue { ids: issued.batch.iter().collect(), token: Some(issued.token.to_string()) })
    }

    fn wait_for(&self, n: u32) -> Result<Issued, Failure> {
        let mut signals = self.signals.clone();
        self.runtime.block_on(async {
            tokio::select! {
                issued = self.node.issue(n) => issued.map_err(|why| ended(self.node, why)),
                Ok(signal) = signals.wait_for(Option::is_some) => {
                    Err(Failure::Interrupted(signal.unwrap_or(Signal::Interrupt)))
                }
            }
        })
    }
}

async fn start(args: &NextArgs) -> Result<Node, Failure> {
    let url = args.place.url()?;
    place::warn_of_memory(&url);
    let mut builder = Node::builder()
        .store_url(url)
        .namespace(args.place.namespace.clone())
        .layout(args.layout.layout)
        .patience(args.patience);
    if let Some((first, last)) = args.workers.workers {
        builder = builder.workers(first..=last);
    }
    let (tell, mut told) = mpsc::unbounded_channel();
    let starting = builder.start_watched(move |state| {
        if let LeaseState::Seeking(waiting) = state
            && !matches!(waiting, Waiting::Answer)
        {
            // Nobody listens any more when the start is over.
            let _ = tell.send(waiting.clone());
        }
    });
    let telling = async {
        // The first reason is told; the others are variations of it.
        if let Some(waiting) = told.recv().await {
            say(waiting_text(args, &waiting).await);
        }
        std::future::pending::<Infallible>().await
    };
    let started = tokio::select! {
        started = starting => started,
        never = telling => match never {},
    };
    match started {
        Ok(node) => Ok(node),
        Err(StartError::NoWorker(why)) => Err(Shortage::of(args, why).await.into()),
        Err(error) => Err(error.into()),
    }
}

/// What a user is told who waits.
async fn waiting_text(args: &NextArgs, waiting: &Waiting) -> String {
    let Waiting::Quarantine { until } = waiting else { return format!("waiting for {waiting}") };
    let seconds = until.saturating_sub(unix_ms()).div_ceil(1000);
    match is_unused(args).await {
        true => format!(
            "waiting up to {seconds} s: the namespace is new here, and whoever still uses a forgotten \
             one may speak up (one known to be new is created by frazil store init, and then not \
             waited for)"
        ),
        false => {
            format!(
                "waiting up to {seconds} s: the namespace is in quarantine until {}",
                instant(*until)
            )
        }
    }
}

/// Whether the namespace has no record yet; if that cannot be told, it is taken for used.
async fn is_unused(args: &NextArgs) -> bool {
    let Ok(store) = args.place.look().await else { return false };
    let listed = store.list(frazil::coord::Group::Workers).await;
    listed.is_ok_and(|entries| entries.is_empty())
}

/// Tells when the lease is in trouble, for how long IDs go on, and when it is well again.
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
                say(format_args!("{}; IDs go on for {seconds} s", described(&status)));
            }
            _ => {}
        }
        troubled = !matches!(status.state, LeaseState::Held);
    }
}

/// Why no more IDs come: the lease knows more than the generator.
fn ended(node: &Node, why: NotIssued) -> Failure {
    let info = node.info();
    match (&why, info.lanes.first()) {
        (NotIssued::NotReady(NotReady::Horizon { .. }), Some(lane)) => {
            let first = lane.status.grant.map(|grant| first_tick(&info.layout, grant.floor));
            if let Some(first) = first.filter(|first| *first > unix_ms()) {
                return too_early(&info.layout, first);
            }
            let why = described(&lane.status);
            Failure::new(Exit::Unavailable, format_args!("the lease was not extended: {why}"))
        }
        _ => why.into(),
    }
}

/// When the first tick begins that lies above a floor altogether.
fn first_tick(layout: &Layout, floor: UnixMs) -> UnixMs {
    let since_epoch = floor.saturating_sub(layout.epoch_ms());
    layout.unix_ms(since_epoch / u64::from(layout.tick_ms()) + 1)
}

fn too_early(layout: &Layout, first: UnixMs) -> Failure {
    let (tick, first) = (span(Duration::from_millis(layout.tick_ms().into())), instant(first));
    let why = format_args!(
        "no ID before {first}: the worker may have been used in the tick that runs, and a tick of \
         this layout takes {tick} (a namespace known to be new is created by frazil store init, and \
         then not waited for)"
    );
    Failure::new(Exit::Refused, why)
}

fn described(status: &LeaseStatus) -> String {
    let state = match &status.state {
        LeaseState::Replacing(loss, Waiting::Quarantine { until }) => {
            let until = instant(*until);
            format!(
                "the worker was lost ({loss}), and the namespace is in quarantine until {until}"
            )
        }
        state => state.to_string(),
    };
    match &status.trouble {
        Some(trouble) => format!("{state}: {trouble:#}"),
        None => state,
    }
}

async fn note_signals(notify: watch::Sender<Option<Signal>>) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    let signal = tokio::select! {
        _ = interrupt.recv() => Signal::Interrupt,
        _ = terminate.recv() => Signal::Terminate,
    };
    // Whoever prints looks at it before each batch; nobody does once all is printed.
    let _ = notify.send(Some(signal));
    notify.closed().await;
}
