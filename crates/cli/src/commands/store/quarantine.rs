//! `frazil store quarantine`.

use std::time::Duration;

use frazil::coord::rules::WINDOW_MAX_MS;
use frazil::coord::stores::file::Copied;
use frazil::coord::time::unix_ms;
use frazil::coord::{Found, Group, Meta, Presence, Put, Record, Store, Versioned};
use serde::Serialize;

use crate::args::QuarantineArgs;
use crate::commands::workers::instant;
use crate::output::{Data, Exit, Failure, say};

/// Added to a window: clocks of different machines differ.
pub(super) const SKEW_MS: u64 = 2000;
/// A quarantine that nodes must wait for is not longer than a day; more is a mistyped unit.
const LONGEST: Duration = Duration::from_hours(24);

#[derive(Serialize)]
struct Quarantined {
    quarantine_ms: u64,
    quarantine: String,
}

pub(super) async fn run(args: &QuarantineArgs) -> Result<(), Failure> {
    let copied = if args.adopt { Copied::Accept } else { Copied::Refuse };
    if args.lasting.is_some_and(|lasting| lasting > LONGEST) {
        return Err(Failure::usage("a quarantine is at most 24 hours"));
    }
    let store = args.place.open(copied).await?;
    let Some(meta) = store.meta().await? else {
        let why = "there is no such namespace, so nothing to quarantine: its first node waits by \
                   itself";
        return Err(Failure::new(Exit::No, why));
    };
    let window_ms = meta.value.window_ms.min(WINDOW_MAX_MS) + SKEW_MS;
    let lasting_ms = args
        .lasting
        .map_or(window_ms, |lasting| u64::try_from(lasting.as_millis()).unwrap_or(u64::MAX));
    let until = unix_ms().saturating_add(lasting_ms);
    let until = raise(store.as_ref(), meta, until).await?;
    forget_holders(store.as_ref()).await?;
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

/// Ends the tenures of holders that are not there. A store that was restored from a backup knows
/// holders again that were succeeded since: they could go on over their successors' times.
async fn forget_holders(store: &dyn Store) -> Result<(), Failure> {
    for group in Group::ALL {
        for entry in store.list(group).await? {
            let Found::Known(record) = entry.found else { continue };
            if record.nonce.is_none() {
                continue;
            }
            let held = entry.presence != Presence::Free;
            let ended = Record { nonce: None, expires: None, ..record };
            if held || store.put(&entry.slot, entry.version, &ended).await? == Put::Conflict {
                say(format_args!(
                    "{} is held by {:?}: if the store was restored from a backup, stop it and run \
                     this again",
                    entry.slot, ended.holder
                ));
            }
        }
    }
    Ok(())
}

/// Raises the quarantine to a time; it is never lowered.
pub(super) async fn raise(
    store: &dyn Store,
    mut meta: Versioned<Meta>,
    until: u64,
) -> Result<u64, Failure> {
    while meta.value.quarantine < until {
        let raised = Meta { quarantine: until, ..meta.value };
        match store.put_meta(Some(meta.version), &raised).await? {
            Put::Done(_) => return Ok(until),
            Put::Conflict => match store.meta().await? {
                Some(newer) => meta = newer,
                None => return Err(Failure::new(Exit::No, "the namespace is gone")),
            },
        }
    }
    Ok(meta.value.quarantine)
}
