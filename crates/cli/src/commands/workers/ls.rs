//! `frazil workers ls`.

use frazil::coord::Standing;

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
        data.text(table(&pool.views))?;
        if pool.views.is_empty() {
            say("no worker was ever used");
        }
    }
    data.flush()?;
    pool.tell_of_guard();
    Ok(())
}

/// What one node holds, and whether it can be stopped.
fn of_node(args: &WorkersLsArgs, name: &str, views: Vec<View>) -> Result<(), Failure> {
    let nodes = Nodes::of(&views);
    let is_its = |view: &View| view.state == Standing::Held && view.holder.as_deref() == Some(name);
    let held: Vec<_> = views.into_iter().filter(is_its).collect();
    let shown = printable(name);
    if held.is_empty() {
        if nodes.named(name).is_err() {
            say(format_args!("warning: no record names {shown}; {}", nodes.names()));
        }
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
