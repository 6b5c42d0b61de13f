//! `frazil store import`.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use frazil::coord::rules::WINDOW_MAX_MS;
use frazil::coord::stores::file::Copied;
use frazil::coord::time::unix_ms;
use frazil::coord::{Found, Group, Meta, Presence, Put, Record, Slot, Store, Version, Versioned};
use serde::Serialize;

use super::export::Line;
use super::quarantine::{SKEW_MS, raise};
use crate::args::ImportArgs;
use crate::output::{Data, Exit, Failure, say};

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
}

pub(super) async fn run(args: &ImportArgs) -> Result<(), Failure> {
    // All of it is read and checked before anything is written.
    let export = read(args)?;
    let store = args.place.open(Copied::Refuse).await?;
    // Whoever held a worker may have gone on since, and nobody knows about a lost record.
    let live =
        |record: &Option<Record>| record.as_ref().is_none_or(|record| record.nonce.is_some());
    let mut quarantine = export.meta.quarantine;
    if export.records.iter().any(|(_, record)| live(record)) {
        let window_ms = export.meta.window_ms.min(WINDOW_MAX_MS) + SKEW_MS;
        quarantine = quarantine.max(unix_ms().saturating_add(window_ms));
    }
    // Until the last record is there nobody may use the namespace, should this end half-way.
    let unfinished = unix_ms().saturating_add(WINDOW_MAX_MS);
    let created = Meta { quarantine: unfinished.max(quarantine), ..export.meta.clone() };
    let (meta, is_new) = agree(&store, &created).await?;
    raise(store.as_ref(), meta, quarantine).await?;
    let mut records = 0;
    for (slot, record) in export.records {
        if let Some(record) = record {
            bring(&store, &slot, record).await?;
            records += 1;
        }
    }
    if is_new {
        finish(store.as_ref(), &created, quarantine).await?;
    }
    say(format_args!("imported {records} records into {store}"));
    if args.json {
        let mut data = Data::new();
        data.json(&Imported { records, quarantine })?;
        data.flush()?;
    }
    Ok(())
}

/// The namespace's meta, which must agree with the export's; created from it if there is none,
/// and whether it was.
async fn agree(
    store: &Arc<dyn Store>,
    exported: &Meta,
) -> Result<(Versioned<Meta>, bool), Failure> {
    if let Some(meta) = store.meta().await? {
        let agrees =
            meta.value.layout == exported.layout && meta.value.workers() == exported.workers();
        return if agrees {
            Ok((meta, false))
        } else {
            Err(Failure::new(
                Exit::Refused,
                format_args!(
                    "the namespace has layout {} and workers {} to {}, the export {} and {} to {}",
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
    match store.put_meta(None, exported).await? {
        Put::Done(version) => Ok((Versioned { version, value: exported.clone() }, true)),
        Put::Conflict => Err(Failure::new(Exit::No, "the namespace was created meanwhile")),
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
        Put::Conflict => Err(Failure::new(Exit::No, "the namespace was changed meanwhile")),
    }
}

/// Writes one record; an existing horizon or token is only raised.
async fn bring(store: &Arc<dyn Store>, slot: &Slot, record: Record) -> Result<(), Failure> {
    let entries = store.list(slot.group()).await?;
    let entry = entries.into_iter().find(|entry| entry.slot == *slot);
    if entry.as_ref().is_some_and(|entry| entry.presence != Presence::Free) {
        let why = format!("{slot} is held: import while no node runs");
        return Err(Failure::new(Exit::Refused, why));
    }
    let version = entry.as_ref().map_or(Version(0), |entry| entry.version);
    let mut record = Record { nonce: None, expires: None, ..record };
    if let Some(Found::Known(old)) = entry.map(|entry| entry.found) {
        record.horizon = record.horizon.max(old.horizon);
        record.token = record.token.max(old.token);
    }
    match store.put(slot, version, &record).await? {
        Put::Done(_) => Ok(()),
        Put::Conflict => {
            let why = format!("{slot} changed meanwhile: import while no node runs");
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
    let meta = meta.ok_or_else(|| Failure::usage("the export has no meta record"))?;
    if end != Some(records.len()) {
        // What is missing may be the record of a worker that is still held.
        let why = format!("the export is cut off after {} records: export again", records.len());
        return Err(Failure::usage(why));
    }
    if meta.format > frazil::coord::FORMAT {
        return Err(Failure::new(Exit::Refused, "the export was written by a newer version"));
    }
    let outside = |slot: &Slot| {
        slot.group() == Group::Workers
            && !slot.number().is_some_and(|number| meta.workers().contains(&number))
    };
    if let Some((slot, _)) = records.iter().find(|(slot, _)| outside(slot)) {
        return Err(Failure::usage(format_args!("{slot} is not in the range of the export")));
    }
    Ok(Export { meta, records })
}
