//! `frazil store quarantine`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frazil::coord::Copied;
use frazil::coord::internal::Leasing;
use frazil::coord::internal::quarantine::{forget_holders, longest_use_ms, raise};
use frazil::coord::internal::time::unix_ms;
use frazil::coord::{Meta, Scheme, Store, Versioned};
use serde::Serialize;

use crate::args::QuarantineArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::words::{Called, instant};

/// A quarantine that nodes must wait for is not longer than a day; more is a mistyped unit.
const LONGEST: Duration = Duration::from_hours(24);

#[derive(Serialize)]
struct Quarantined {
    quarantine_ms: u64,
    quarantine: String,
}

pub(super) async fn run(args: &QuarantineArgs) -> Result<(), Failure> {
    if args.lasting.is_some_and(|lasting| lasting > LONGEST) {
        return Err(Failure::usage("a quarantine is at most 24 hours"));
    }
    let (store, meta) = open(args).await?;
    args.loss.check(store.as_ref()).await?;
    let lasting_ms = args.lasting.map_or_else(
        || longest_use_ms(meta.value.window_ms),
        |lasting| u64::try_from(lasting.as_millis()).unwrap_or(u64::MAX),
    );
    let until = raise(store.as_ref(), meta, unix_ms().saturating_add(lasting_ms)).await?;
    let until = until.ok_or_else(|| {
        let why = "the namespace is gone: create it with frazil store init and run this again";
        Failure::new(Exit::No, why)
    })?;
    for (slot, holder) in forget_holders(store.as_ref()).await? {
        say(format_args!(
            "{} is held by {holder:?}: if the store was restored from a backup, stop it and run this \
             again",
            Called(&slot)
        ));
    }
    args.loss.settle(store.as_ref()).await?;
    if args.adopt {
        // Only now: a copy without a quarantine must not look like any other directory.
        args.place.open(Copied::Adopt).await?;
    }
    say(format_args!("no worker is used before {} passes", instant(until)));
    if args.json {
        let mut data = Data::new();
        data.json(&Quarantined { quarantine_ms: until, quarantine: instant(until) })?;
        data.flush()?;
    }
    Ok(())
}

async fn open(args: &QuarantineArgs) -> Result<(Arc<dyn Store>, Versioned<Meta>), Failure> {
    let url = args.place.url()?;
    if !args.adopt {
        return args.place.open_namespace().await.map_err(|failure| match failure {
            Failure::Message(Exit::No, message) => Failure::Message(
                Exit::No,
                format!(
                    "{message}. If its store was wiped, do that and then run this again, before \
                     any node starts"
                ),
            ),
            other => other,
        });
    }
    if !matches!(url.scheme, Scheme::File | Scheme::Static) {
        let why = "--adopt is for a copied directory (file:DIRECTORY or static:N): leave it out";
        return Err(Failure::usage(why));
    }
    if url.scheme == Scheme::File
        && !Path::new(&url.path).join(args.place.namespace.as_str()).exists()
    {
        let why = format!(
            "{url} has no namespace {:?} to adopt: name the copied directory with --store",
            args.place.namespace.as_str()
        );
        return Err(Failure::new(Exit::No, why));
    }
    let store = args.place.open(Copied::Accept).await?;
    match store.meta().await? {
        Some(meta) => Ok((store, meta)),
        None => Err(args.place.no_namespace(&store)),
    }
}
