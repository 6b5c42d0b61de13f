//! `frazil store import`.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use frazil::coord::rules::WINDOW_MAX_MS;
use frazil::coord::stores::file::Copied;
use frazil::coord::time::unix_ms;
use frazil::coord::{
    Found, Group, Leasing, Meta, Presence, Put, Record, Slot, SlotState, Store, Token, Version,
    Versioned,
};
use serde::Serialize;

use super::export::{Line, is_outside, tell_of_outsiders};
use super::quarantine::{SKEW_MS, raise};
use crate::args::ImportArgs;
use crate::commands::place::{over_blank, version_to_fill};
use crate::commands::workers::Pool;
use crate::output::{Data, Exit, Failure, say};
use crate::words::{Called, count, instant};

/// A line of an export is one record; what is longer is something else.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What was read from an export.
struct Export {
    meta: Meta,
    records: Vec<(Slot, Option<Record>)>,
}

#[derive(Serialize)]
struct Imported {
    records: usize,
    quarantine: u64,
    poisoned: Vec<u32>,
}

pub(super) async fn run(args: &ImportArgs) -> Result<(), Failure> {
    // All of it is read and checked before anything is written.
    let export = read(args)?;
    let store = args.place.open(Copied::Refuse).await?;
    args.loss.check(store.as_ref()).await?;
    // Whoever held a worker may have gone on since, and nobody knows about a lost record.
    let live =
        |record: &Option<Record>| record.as_ref().is_none_or(|record| record.nonce.is_some());
    let mut quarantine = export.meta.quarantine;
    let was_live = export.records.iter().any(|(_, record)| live(record));
    if was_live {
        let window_ms = export.meta.window_ms.min(WINDOW_MAX_MS) + SKEW_MS;
        quarantine = quarantine.max(unix_ms().saturating_add(window_ms));
    }
    // Until the last record is there nobody may use the namespace, should this end half-way.
    let unfinished = unix_ms().saturating_add(WINDOW_MAX_MS);
    let created = Meta { quarantine: unfinished.max(quarantine), ..export.meta.clone() };
    let outside = export.records.iter().filter(|(slot, _)| is_outside(slot, &export.meta)).count();
    let (meta, is_new) = agree(&store, &created).await?;
    let created = Meta { token_floor: meta.value.token_floor, ..created };
    let quarantine = match is_new {
        true => quarantine,
        false => raise(store.as_ref(), meta, quarantine).await?,
    };
    let mut records = 0;
    for (slot, record) in export.records {
        if let Some(record) = record {
            records += usize::from(bring(&store, &slot, record).await?);
        }
    }
    if is_new {
        finish(store.as_ref(), &created, quarantine).await?;
    }
    args.loss.settle(store.as_ref()).await?;
    say(format_args!("imported {} into {store}", count(records, "record")));
    tell_of_outsiders(outside, &created);
    tell_of_quarantine(quarantine, was_live);
    let poisoned = poisoned(&store).await?;
    if args.json {
        let mut data = Data::new();
        data.json(&Imported { records, quarantine, poisoned })?;
        data.flush()?;
    }
    Ok(())
}

fn tell_of_quarantine(quarantine: u64, was_live: bool) {
    if quarantine > unix_ms() {
        let why = match was_live {
            true => "some were held or lost when they were exported, and may have been used since",
            false => "the export, or the namespace before, was in quarantine",
        };
        say(format_args!("no worker is used before {} passes: {why}", instant(quarantine)));
    }
}

/// Names the workers whose horizon is too far ahead for anybody to use them.
async fn poisoned(store: &Arc<dyn Store>) -> Result<Vec<u32>, Failure> {
    let Some(meta) = store.meta().await? else {
        return Err(Failure::new(Exit::No, "the namespace is gone: import again"));
    };
    let pool = Pool::read(store.as_ref(), meta, unix_ms()).await?;
    let mut poisoned = Vec::new();
    for view in pool.views.iter().filter(|view| view.state == SlotState::Poisoned) {
        let horizon = view.horizon.as_deref().unwrap_or("unknown");
        say(format_args!(
            "warning: worker {worker} is poisoned, its horizon is {horizon}: frazil workers repair \
             {worker} --last-issued ID",
            worker = view.worker
        ));
        poisoned.push(view.worker);
    }
    Ok(poisoned)
}

/// The namespace's meta, which must agree with the export's; created from it if there is none,
/// and whether it was.
async fn agree(
    store: &Arc<dyn Store>,
    exported: &Meta,
) -> Result<(Versioned<Meta>, bool), Failure> {
    let known = store.meta().await?;
    let blank = version_to_fill(known.as_ref());
    let created = over_blank(exported.clone(), known.as_ref());
    if let Some(meta) = known.filter(|meta| !meta.value.is_blank()) {
        let agrees =
            meta.value.layout == exported.layout && meta.value.workers() == exported.workers();
        return if agrees {
            Ok((with_token_floor(store, meta, exported.token_floor).await?, false))
        } else {
            Err(Failure::new(
                Exit::Refused,
                format_args!(
                    "the namespace has layout {} and workers {} to {}, the export {} and {} to {}: \
                     import into a store that does not have the namespace yet",
                    meta.value.layout,
                    meta.value.first_worker,
                    meta.value.last_worker,
                    exported.layout,
                    exported.first_worker,
                    exported.last_worker
                ),
            ))
        };
    }
    match store.put_meta(blank, &created).await? {
        Put::Done(version) => Ok((Versioned { version, value: created }, true)),
        Put::Conflict => {
            Err(Failure::new(Exit::No, "the namespace was created meanwhile: import again"))
        }
    }
}

/// Meta with a floor of tokens that is at least this: elections that the export has forgotten may be
/// held again.
async fn with_token_floor(
    store: &Arc<dyn Store>,
    meta: Versioned<Meta>,
    floor: Token,
) -> Result<Versioned<Meta>, Failure> {
    if meta.value.token_floor >= floor {
        return Ok(meta);
    }
    let raised = Meta { token_floor: floor, ..meta.value };
    match store.put_meta(Some(meta.version), &raised).await? {
        Put::Done(version) => Ok(Versioned { version, value: raised }),
        Put::Conflict => {
            Err(Failure::new(Exit::No, "the namespace was changed meanwhile: import again"))
        }
    }
}

/// Opens a namespace that this import has created: its quarantine comes down to what is needed.
async fn finish(store: &dyn Store, created: &Meta, quarantine: u64) -> Result<(), Failure> {
    let meta = store.meta().await?.filter(|meta| meta.value == *created);
    let opened = Meta { quarantine, ..created.clone() };
    let put = match meta {
        Some(meta) => store.put_meta(Some(meta.version), &opened).await?,
        None => Put::Conflict,
    };
    match put {
        Put::Done(_) => Ok(()),
        Put::Conflict => Err(Failure::new(
            Exit::No,
            "the namespace was changed meanwhile: import again while no node runs",
        )),
    }
}

/// Writes one record; an existing horizon or token is only raised. `false`: what is there stays.
async fn bring(store: &Arc<dyn Store>, slot: &Slot, record: Record) -> Result<bool, Failure> {
    let entries = store.list(slot.group()).await?;
    let entry = entries.into_iter().find(|entry| entry.slot == *slot);
    let version = entry.as_ref().map_or(Version(0), |entry| entry.version);
    if slot.group() == Group::Keys {
        if let Some(Found::Known(_)) = entry.map(|entry| entry.found) {
            say("the API keys of the store stay as they are: those of the export are left out");
            return Ok(false);
        }
        say(
            "the API keys of the export are in force again, those revoked since too: frazil key ls",
        );
        return put(store, slot, version, &record).await;
    }
    if entry.as_ref().is_some_and(|entry| entry.presence != Presence::Free) {
        let why = format!("{} is held: import while no node runs", Called(slot));
        return Err(Failure::new(Exit::Refused, why));
    }
    let mut record = Record { nonce: None, expires: None, ..record };
    if let Some(Found::Known(old)) = entry.map(|entry| entry.found) {
        record.horizon = record.horizon.max(old.horizon);
        record.token = record.token.max(old.token);
    }
    put(store, slot, version, &record).await
}

async fn put(
    store: &Arc<dyn Store>,
    slot: &Slot,
    version: Version,
    record: &Record,
) -> Result<bool, Failure> {
    match store.put(slot, version, record).await? {
        Put::Done(_) => Ok(true),
        Put::Conflict => {
            let why = format!("{} changed meanwhile: import while no node runs", Called(slot));
            Err(Failure::new(Exit::No, why))
        }
    }
}

fn read(args: &ImportArgs) -> Result<Export, Failure> {
    let unreadable = |error: io::Error| {
        Failure::usage(format_args!("{} cannot be read: {error}", args.file.display()))
    };
    let input: Box<dyn Read> = match args.file.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(fs::File::open(&args.file).map_err(unreadable)?),
    };
    let mut input = BufReader::new(input);
    let (mut meta, mut end) = (None, None);
    let mut records = Vec::new();
    for number in 1.. {
        let mut text = Vec::new();
        input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text).map_err(unreadable)?;
        if text.is_empty() {
            break;
        }
        let wrong = |why: String| Failure::usage(format!("line {number} of the export: {why}"));
        match serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))? {
            _ if end.is_some() => return Err(wrong("something after the end".into())),
            Line::End { records } => end = Some(records),
            Line::Meta(_) if meta.is_some() => return Err(wrong("a second meta record".into())),
            Line::Meta(read) => meta = Some(read),
            Line::Record { group, name, record } => {
                let slot = Slot::named(group, &name).map_err(|error| wrong(error.to_string()))?;
                records.push((slot, record));
            }
        }
    }
    let meta = meta.ok_or_else(|| {
        Failure::usage("the export has no meta record: give what frazil store export printed")
    })?;
    if end != Some(records.len()) {
        // What is missing may be the record of a worker that is still held.
        let read = count(records.len(), "record");
        let why = format!("the export is cut off after {read}: export again");
        return Err(Failure::usage(why));
    }
    if meta.format > frazil::coord::FORMAT {
        return Err(Failure::new(
            Exit::Refused,
            "the export was written by a newer version of frazil: import it with that",
        ));
    }
    if meta.workers().is_empty() {
        return Err(Failure::usage("the export's range of workers is empty: export again"));
    }
    Ok(Export { meta, records })
}
