//! `frazil workers repair`.

use frazil::coord::internal::rules::{SlotAvailability, availability};
use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::{Claim, Leasing};
use frazil::coord::{Found, Presence, Put, Record, Slot, Store, Version};
use frazil_id::Id;

use super::pool::Pool;
use crate::args::WorkersRepairArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::words::instant;

pub(super) async fn run(args: &WorkersRepairArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.open_namespace().await?;
    let layout = &args.layout.layout;
    if meta.value.layout != frazil::layout_mark(layout) {
        let why = format!("the namespace has another layout: {}", meta.value.layout);
        return Err(Failure::new(Exit::Refused, why));
    }
    let parts = Id::from_u64(args.last_issued).parts(layout).map_err(Failure::usage)?;
    if parts.worker != u64::from(args.worker) {
        let why = format!("that ID is of worker {}, not {}", parts.worker, args.worker);
        return Err(Failure::usage(why));
    }
    let slot = Slot::worker(args.worker);
    let look = store.read(std::slice::from_ref(&slot)).await?;
    let Some(entry) = look.entry(&slot).filter(|entry| entry.found != Found::New).cloned() else {
        return Err(Failure::new(Exit::No, format_args!("worker {} was never used", args.worker)));
    };
    if entry.presence != Presence::Free {
        let why = format!("worker {} is held: stop its holder first", args.worker);
        return Err(Failure::new(Exit::Refused, why));
    }
    let Found::Known(record) = entry.found else {
        let why = "its record is lost: frazil store repair gives it a new one";
        return Err(Failure::new(Exit::Refused, why));
    };
    let horizon = layout.unix_ms(parts.tick);
    let judge = Claim::to_judge(&meta, unix_ms());
    let is_poisoned = |time| {
        let record = Record { horizon: time, ..record.clone() };
        matches!(
            availability(&Found::Known(record), &judge, &look.history),
            SlotAvailability::Poisoned { .. }
        )
    };
    if record.horizon > horizon && !is_poisoned(record.horizon) {
        let why = format!(
            "worker {} is not poisoned: it can be used after {}",
            args.worker,
            instant(record.horizon)
        );
        return Err(Failure::new(Exit::Refused, why));
    }
    if horizon < record.floor && !is_poisoned(record.floor) {
        let why = format!(
            "that ID is from before the last holder, who started after {}: name a later one",
            instant(record.floor)
        );
        return Err(Failure::new(Exit::Refused, why));
    }
    if record.horizon <= horizon {
        say(format_args!("nothing to lower: the horizon is {}", instant(record.horizon)));
    } else {
        let repaired = Record { horizon, floor: record.floor.min(horizon), nonce: None, ..record };
        write(args, store.as_ref(), entry.version, &repaired).await?;
        say(format_args!("worker {} may be used after {}", args.worker, instant(horizon)));
    }
    if args.json {
        let Pool { views, .. } = Pool::read(store.as_ref(), meta, unix_ms()).await?;
        let mut data = Data::new();
        if let Some(view) = views.iter().find(|view| view.worker == args.worker) {
            data.json(view)?;
        }
        data.flush()?;
    }
    Ok(())
}

/// Writes the record over the version that was read, so that it lasts.
async fn write(
    args: &WorkersRepairArgs,
    store: &dyn Store,
    read: Version,
    record: &Record,
) -> Result<(), Failure> {
    args.loss.check(store).await?;
    match store.put(&Slot::worker(args.worker), read, record).await? {
        Put::Done(_) => args.loss.settle(store).await,
        Put::Conflict => {
            let why = format!("worker {} was taken meanwhile", args.worker);
            Err(Failure::new(Exit::No, why))
        }
    }
}
