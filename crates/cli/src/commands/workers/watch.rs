//! `frazil workers watch`.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::{Leasing, SlotState};
use frazil::coord::{Changes, Error, Group, Meta, Store, Versioned, Watched};
use terminal_size::terminal_size;
use tokio::signal::unix::{SignalKind, signal};

use super::pool::Pool;
use super::table::table;
use super::view::View;
use crate::args::WorkersWatchArgs;
use crate::output::{Data, Failure, say};

/// Time passes also where nothing is announced: presence ends, horizons pass. A store that is away
/// is looked for as often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The header, the count of those that are not shown, and the line of the cursor.
const OTHER_LINES: usize = 3;
/// Clears the screen and goes to its upper left corner.
const CLEAR: &[u8] = b"\x1b[2J\x1b[H";

pub(super) async fn run(args: &WorkersWatchArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.look_at_namespace().await?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut watch = Watch { args, store: store.as_ref(), meta, shown: BTreeMap::new() };
    tokio::select! {
        ended = watch.follow() => ended,
        _ = interrupt.recv() => Ok(()),
    }
}

struct Watch<'a> {
    args: &'a WorkersWatchArgs,
    store: &'a dyn Store,
    meta: Versioned<Meta>,
    /// State and token of each worker as they were shown last.
    shown: BTreeMap<u32, (SlotState, Option<String>)>,
}

impl Watch<'_> {
    /// Shows the workers for ever; an outage of the store is said, and waited for.
    async fn follow(&mut self) -> Result<(), Failure> {
        let mut is_away = false;
        loop {
            // Before the list is read: a change in between is announced.
            let opened = self.store.watch(&Watched::Group(Group::Workers)).await;
            let Err(error) = self.show_until_away(opened, &mut is_away).await? else { continue };
            if !error.kind().is_retryable() {
                return Err(error.into());
            }
            if !is_away {
                is_away = true;
                say(format_args!("the store is away, and looked for every second: {error:#}"));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Shows every change until the announcements end, or gives why the store cannot be asked.
    async fn show_until_away(
        &mut self,
        opened: Result<Changes, Error>,
        is_away: &mut bool,
    ) -> Result<Result<(), Error>, Failure> {
        let mut changes = match opened {
            Ok(changes) => changes,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            let pool = match Pool::read(self.store, self.meta.clone(), unix_ms()).await {
                Ok(pool) => pool,
                Err(error) => return Ok(Err(error)),
            };
            if std::mem::take(is_away) {
                say("the store is back");
            }
            self.show(&pool)?;
            // A time-out and a change are the same: look again. Only the end of the watch is not.
            if let Ok(None) = tokio::time::timeout(LOOK_AGAIN, changes.next()).await {
                break;
            }
        }
        Ok(match self.store.meta().await {
            Ok(meta) => {
                self.meta = meta.unwrap_or_else(|| self.meta.clone());
                Ok(())
            }
            Err(error) => Err(error),
        })
    }

    fn show(&mut self, pool: &Pool) -> Result<(), Failure> {
        let draw = !self.args.json && io::stdout().is_terminal();
        if draw { redraw(&pool.views) } else { self.print_changes(&pool.views) }
    }

    /// Prints the workers whose state, holder or token is not what was shown last.
    fn print_changes(&mut self, views: &[View]) -> Result<(), Failure> {
        let mut data = Data::new();
        let table = table(views);
        let mut lines = table.lines();
        let header = lines.next().unwrap_or_default();
        if self.shown.is_empty() && !self.args.json {
            data.text(header)?;
        }
        for (view, line) in views.iter().zip(lines) {
            let now = (view.state, view.token.clone());
            if self.shown.insert(view.worker, now.clone()) == Some(now) {
                continue;
            }
            if self.args.json { data.json(view)? } else { data.text(line)? }
        }
        data.flush()
    }
}

/// Draws the workers that are not free, as many as fit below the header.
fn redraw(views: &[View]) -> Result<(), Failure> {
    let mut shown: Vec<_> = views.iter().filter(|view| !view.is_free()).cloned().collect();
    let room = terminal_size().map_or(usize::MAX, |(_, height)| usize::from(height.0));
    let hidden = shown.len().saturating_sub(room.saturating_sub(OTHER_LINES).max(1));
    shown.truncate(shown.len() - hidden);
    let mut data = Data::new();
    data.write(CLEAR)?;
    data.text(table(&shown))?;
    if hidden > 0 {
        data.text(format_args!("and {hidden} more: `frazil workers ls` lists all"))?;
    }
    data.flush()
}
