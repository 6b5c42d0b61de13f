//! `frazil workers ls`.

use frazil::coord::internal::SlotState;

use super::nodes::{Look, Nodes, listed};
use super::table::table;
use super::view::View;
use crate::args::WorkersLsArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::words::printable;

pub(super) async fn run(args: &WorkersLsArgs) -> Result<(), Failure> {
    let pool = Look::at(&args.place).await?.pool().await?;
    if let Some(name) = &args.node {
        return of_node(args, name, pool.views);
    }
    let mut data = Data::new();
    if args.json {
        for view in &pool.views {
            data.json(view)?;
        }
    } else {
        let is_shown = |view: &&View| args.all || !view.is_free();
        let shown: Vec<_> = pool.views.iter().filter(is_shown).cloned().collect();
        data.text(table(&shown))?;
        match pool.views.len() - shown.len() {
            _ if pool.views.is_empty() => say("no worker was ever used"),
            0 => {}
            1 => say("1 worker that was used before is free: --all shows it"),
            free => {
                say(format_args!("{free} workers that were used before are free: --all shows them"))
            }
        }
    }
    data.flush()?;
    pool.tell_of_guard();
    Ok(())
}

/// What one node holds, and whether it can be stopped.
fn of_node(args: &WorkersLsArgs, name: &str, views: Vec<View>) -> Result<(), Failure> {
    let nodes = Nodes::of(&views);
    let is_its =
        |view: &View| view.state == SlotState::Held && view.holder.as_deref() == Some(name);
    let held: Vec<_> = views.into_iter().filter(is_its).collect();
    let shown = printable(name);
    if held.is_empty() {
        nodes.named(name)?;
        say(format_args!("{shown} holds no worker: it is safe to stop it"));
        return Ok(());
    }
    let mut data = Data::new();
    if args.json {
        for view in &held {
            data.json(view)?;
        }
    } else {
        data.text(table(&held))?;
    }
    data.flush()?;
    let workers = listed(&nodes.held_by(name));
    say(format_args!("{shown} holds {workers}: drain it first, or stop it: SIGTERM releases them"));
    Err(Failure::Reported(Exit::No))
}
