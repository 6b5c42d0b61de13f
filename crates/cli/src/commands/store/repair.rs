//! `frazil store repair`.

use std::sync::Arc;

use frazil::RequestedNamespace;
use frazil::coord::Copied;
use frazil::coord::internal::keeper::repair_command;
use frazil::coord::internal::quarantine::longest_use_ms;
use frazil::coord::internal::repair;
use frazil::coord::internal::rules::{WINDOW_MAX_MS, is_plainly_wrong};
use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::transfer::{over_blank, version_to_fill};
use frazil::coord::internal::{Claim, Leasing, SlotState, pool_meta};
use frazil::coord::{Group, Meta, Put, Store, UnixMs, Versioned};
use serde::Serialize;

use crate::args::RepairArgs;
use crate::commands::workers::Pool;
use crate::output::{Data, Exit, Failure, say};
use crate::words::{count, instant};

#[derive(Serialize)]
struct Repaired {
    repaired: usize,
    /// Whether meta was gone and is created anew.
    meta_created: bool,
    poisoned: Vec<u32>,
}

pub(super) async fn run(args: &RepairArgs) -> Result<(), Failure> {
    let (store, meta, meta_created) = open(args).await?;
    let now = unix_ms();
    let repaired =
        repair::lost_records(store.as_ref(), &Claim::to_judge(&meta, now), unix_ms).await?;
    args.loss.settle(store.as_ref()).await?;
    let blocked = match repaired {
        0 => String::new(),
        _ => format!(", which blocks them for {} s", meta.value.window_ms / 1000),
    };
    say(format_args!("{} got a new one{blocked}", count(repaired, "lost record")));
    let is_wrong = warn_of_wrong_times(args, &meta.value, store.time().await?.unwrap_or(now));
    let pool = Pool::read(store.as_ref(), meta, now).await?;
    let views = pool.views.iter().filter(|view| view.state == SlotState::Poisoned);
    let poisoned: Vec<_> = views.map(|view| view.worker).collect();
    for worker in &poisoned {
        say(format_args!(
            "worker {worker} is poisoned: frazil workers repair {worker} --last-issued ID"
        ));
    }
    let is_well = poisoned.is_empty() && !is_wrong;
    if args.json {
        let mut data = Data::new();
        data.json(&Repaired { repaired, meta_created, poisoned })?;
        data.flush()?;
    }
    if is_well { Ok(()) } else { Err(Failure::Reported(Exit::No)) }
}

/// Says so if nobody can use a worker because a clock was plainly wrong; whether it is so.
fn warn_of_wrong_times(args: &RepairArgs, meta: &Meta, now: UnixMs) -> bool {
    let is_wrong = is_plainly_wrong(meta.quarantine, now);
    if is_wrong {
        let store = args.place.url().map(|url| url.to_string()).unwrap_or_default();
        say(format_args!(
            "no worker is used before {}, which is plainly wrong: {}",
            instant(meta.quarantine),
            repair_command(&store, Some(&args.place.namespace))
        ));
    }
    is_wrong
}

/// Opens the namespace; creates its meta anew if only that is gone, and whether it did.
async fn open(args: &RepairArgs) -> Result<(Arc<dyn Store>, Versioned<Meta>, bool), Failure> {
    let looked = args.place.look().await?;
    if pool_meta(looked.as_ref()).await?.is_none() && looked.list(Group::Workers).await?.is_empty()
    {
        return Err(args.place.no_namespace(&looked));
    }
    let store = args.place.open(Copied::Refuse).await?;
    args.loss.check(store.as_ref()).await?;
    let known = store.meta().await?;
    let blank = version_to_fill(known.as_ref());
    if let Some(meta) = known.clone().filter(|meta| !meta.value.is_blank()) {
        return Ok((store, meta, false));
    }
    let meta = over_blank(create(args)?, known.as_ref());
    match store.put_meta(blank, &meta).await? {
        Put::Done(version) => {
            say(format_args!(
                "there were records without meta: it is created anew with workers {} to {}, and no \
                 worker is used before {} passes",
                meta.first_worker,
                meta.last_worker,
                instant(meta.quarantine)
            ));
            Ok((store, Versioned { version, value: meta }, true))
        }
        Put::Conflict => {
            Err(Failure::new(Exit::No, "the namespace was created meanwhile: run this again"))
        }
    }
}

/// Meta for records that lost theirs. Their window is not known unless it is told, so that the
/// longest there is must pass.
fn create(args: &RepairArgs) -> Result<Meta, Failure> {
    let url = args.place.url()?;
    let meta = RequestedNamespace::new(&url, &args.layout.layout)
        .workers(args.workers.workers)
        .window(args.window)
        .meta()?;
    let window_ms = args.window.map_or(WINDOW_MAX_MS, |_| meta.window_ms);
    let quarantine = unix_ms().saturating_add(longest_use_ms(window_ms));
    Ok(Meta { quarantine, ..meta })
}
