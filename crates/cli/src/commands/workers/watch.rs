//! `frazil workers watch`.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use frazil::coord::time::unix_ms;
use frazil::coord::{Group, Meta, Store, Versioned};
use tokio::signal::unix::{SignalKind, signal};

use super::view::{State, View, table, views};
use crate::args::WorkersWatchArgs;
use crate::output::{Data, Failure};

/// Time passes also where nothing is announced: presence ends, horizons pass.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Clears the screen and goes to its upper left corner.
const CLEAR: &[u8] = b"\x1b[2J\x1b[H";

pub(super) async fn run(args: &WorkersWatchArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.open_namespace().await?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        ended = follow(args, store.as_ref(), meta) => ended,
        _ = interrupt.recv() => Ok(()),
    }
}

async fn follow(
    args: &WorkersWatchArgs,
    store: &dyn Store,
    mut meta: Versioned<Meta>,
) -> Result<(), Failure> {
    let draw = !args.json && io::stdout().is_terminal();
    let mut shown = BTreeMap::new();
    loop {
        // Before the list is read: a change in between is announced.
        let mut changes = store.watch(Group::Workers).await?;
        loop {
            let now = views(store, &meta, unix_ms()).await?;
            if draw {
                redraw(&now)?
            } else {
                print_changes(args, &now, &mut shown)?
            }
            // A time-out and a change are the same: look again. Only the end of the watch is not.
            if let Ok(None) = tokio::time::timeout(LOOK_AGAIN, changes.next()).await {
                break;
            }
        }
        meta = store.meta().await?.unwrap_or(meta);
    }
}

fn redraw(views: &[View]) -> Result<(), Failure> {
    let mut data = Data::new();
    data.write(CLEAR)?;
    data.text(table(views))?;
    data.flush()
}

/// Prints the workers whose state, holder or token is not what was shown last.
fn print_changes(
    args: &WorkersWatchArgs,
    views: &[View],
    shown: &mut BTreeMap<u32, (State, Option<String>)>,
) -> Result<(), Failure> {
    let mut data = Data::new();
    for view in views {
        let now = (view.state, view.token.clone());
        if shown.insert(view.worker, now.clone()) == Some(now) {
            continue;
        }
        if args.json {
            data.json(view)?;
        } else {
            let lines = table(std::slice::from_ref(view));
            data.text(lines.lines().nth(1).unwrap_or_default())?;
        }
    }
    data.flush()
}
