//! `frazil store repair --wrong-times`.

use frazil::coord::Copied;
use frazil::coord::FirstUse;
use frazil::coord::internal::Leasing;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::wrong_times::{Lowered, NotLowered, WrongTimes, lower};
use frazil::coord::{Group, Slot, UnixMs};
use serde::Serialize;

use crate::args::RepairArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::words::{Called, instant, printable};

/// How many slots are named; `workers ls` names all.
const NAMED_MAX: usize = 8;

#[derive(Serialize)]
struct Report {
    /// What was taken for the time.
    now_ms: u64,
    quarantine_before_ms: Option<u64>,
    quarantine_ms: u64,
    /// Workers that are out of use until their horizon has passed.
    retired: Vec<RetiredWorker>,
}

#[derive(Serialize)]
struct RetiredWorker {
    worker: Option<u32>,
    until_ms: u64,
    until: String,
}

pub(super) async fn run(args: &RepairArgs) -> Result<(), Failure> {
    let looked = args.place.look().await?;
    if looked.meta().await?.is_none() {
        return Err(args.place.no_namespace(&looked));
    }
    let store = args.place.open(Copied::Refuse).await?;
    args.loss.check(store.as_ref()).await?;
    let first_use = FirstUse::of(args.place.url()?.scheme);
    let lowered = match lower(store.as_ref(), first_use, unix_ms).await {
        Ok(lowered) => lowered,
        Err(NotLowered::NoNamespace) => return Err(args.place.no_namespace(&store)),
        Err(NotLowered::Held(found)) => return Err(held(&found)),
        Err(NotLowered::Store(error)) => return Err(error.into()),
    };
    args.loss.settle(store.as_ref()).await?;
    tell(&lowered);
    if args.json {
        let mut data = Data::new();
        data.json(&report(&lowered))?;
        data.flush()?;
    }
    Ok(())
}

fn held(found: &WrongTimes) -> Failure {
    let held = found.held.iter().take(NAMED_MAX);
    let named = held.map(|(slot, holder)| format!("{} ({})", Called(slot), printable(holder)));
    let holders: Vec<_> = named.collect();
    let why = format!(
        "nothing was changed: the clock of whoever holds {} is plainly wrong, and would write such \
         times again. Stop it, or set its clock right and restart it; then run this again (a process \
         that was killed is gone after its TTL)",
        holders.join(", ")
    );
    Failure::new(Exit::Refused, why)
}

fn tell(lowered: &Lowered) {
    let Lowered { found, quarantine, now } = lowered;
    match found.quarantine {
        None => say(format_args!(
            "it is {}, and the quarantine is not plainly wrong: nothing was changed",
            instant(*now)
        )),
        Some(before) => say(format_args!(
            "it is {}: no worker was to be used before {}, and now none is before {}",
            instant(*now),
            instant(before),
            instant(*quarantine)
        )),
    }
    for (slot, until) in found.slots.iter().take(NAMED_MAX) {
        say(stays_out(slot, *until));
    }
    if let Some(more) = found.slots.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        say(format_args!("and {more} more: see frazil workers ls"));
    }
}

fn stays_out(slot: &Slot, until: UnixMs) -> String {
    let (called, until) = (Called(slot), instant(until));
    match (slot.group(), slot.number()) {
        (Group::Workers, Some(worker)) => format!(
            "{called} stays out of use until {until}: it may have issued IDs up to then. If your data \
             shows that it did not: frazil workers repair {worker} --last-issued ID"
        ),
        _ => format!("{called} has no leader before {until}: its IDs may go up to then"),
    }
}

fn report(lowered: &Lowered) -> Report {
    let retired = lowered.found.slots.iter().filter(|(slot, _)| slot.group() == Group::Workers);
    Report {
        now_ms: lowered.now,
        quarantine_before_ms: lowered.found.quarantine,
        quarantine_ms: lowered.quarantine,
        retired: retired
            .map(|(slot, until)| RetiredWorker {
                worker: slot.number(),
                until_ms: *until,
                until: instant(*until),
            })
            .collect(),
    }
}
