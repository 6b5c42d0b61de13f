//! `frazil workers drain`.

use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_wire::Drained;

use super::nodes::{Look, Target, listed};
use crate::args::DrainArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::remote::{NoAnswer, Server};
use crate::words::printable;

/// How often the store is looked at until it shows that nothing is held.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(super) async fn run(args: &DrainArgs) -> Result<(), Failure> {
    let deadline = boot_time().saturating_add(args.patience);
    let (server, name) = match args.target.find().await? {
        Target::Idle(name) => return end(args, &nothing_held(&name)),
        Target::At(server, name) => (server, name),
    };
    // The server is taken at its word only if there is no store to ask.
    let look = match name.is_none() && args.target.place.named().is_none() {
        true => None,
        false => Some(Look::at(&args.target.place).await?),
    };
    let drained = match ask(&server, args.patience) {
        Ok(drained) => Some(drained),
        // It may be done all the same: the store knows.
        Err(NoAnswer::Late(_)) if look.is_some() && name.is_some() => None,
        Err(none) => return Err(none.into()),
    };
    let name = name.or_else(|| drained.as_ref().map(|drained| drained.node.clone()));
    let name = name.unwrap_or_default();
    if let Some(look) = look {
        wait_until_free(&look, &name, deadline, args.patience).await?;
    }
    end(args, &drained.unwrap_or_else(|| nothing_held(&name)))
}

fn ask(server: &Server, patience: Duration) -> Result<Drained, NoAnswer> {
    let answer = server.try_post("/v1/node:drain", patience)?;
    Ok(answer.map_err(|problem| server.said_no(&problem))?)
}

/// Waits until the store shows that a node holds no worker.
async fn wait_until_free(
    look: &Look,
    name: &str,
    deadline: Duration,
    patience: Duration,
) -> Result<(), Failure> {
    loop {
        let held = look.nodes().await?.held_by(name);
        if held.is_empty() {
            return Ok(());
        }
        if boot_time() >= deadline {
            let (name, held) = (printable(name), listed(&held));
            let why = format!(
                "{name} still holds {held} after {patience:?}: look at its log, or stop it: \
                 SIGTERM releases them"
            );
            return Err(Failure::new(Exit::No, why));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// What a node says that had nothing to release.
fn nothing_held(name: &str) -> Drained {
    Drained::new(name, "draining", Vec::new())
}

fn end(args: &DrainArgs, drained: &Drained) -> Result<(), Failure> {
    let mut data = Data::new();
    if args.json {
        data.json(drained)?;
    } else {
        for worker in &drained.released {
            data.text(worker)?;
        }
    }
    data.flush()?;
    let name = printable(&drained.node);
    match drained.released.is_empty() {
        true => say(format_args!("{name} holds no worker: it is safe to stop it")),
        false => say(format_args!(
            "{name} has released {}: it is safe to stop {name}",
            listed(&drained.released)
        )),
    }
    Ok(())
}
