//! `frazil store import`.

use std::fs;
use std::io::{self, BufReader, Read};

use frazil::coord::Copied;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::transfer::{
    Export, ExportError, ImportError, Imported, ImportedKeys, import,
};
use frazil::coord::internal::{Leasing, SlotState};
use frazil::coord::{Found, Group, Meta, Store};
use serde::Serialize;

use super::export::tell_of_outsiders;
use crate::args::ImportArgs;
use crate::commands::workers::Pool;
use crate::output::{Data, Exit, Failure, say};
use crate::words::{Called, count, instant};

/// What `--json` prints.
#[derive(Serialize)]
struct ImportReport {
    records: usize,
    quarantine: u64,
    poisoned: Vec<u32>,
}

pub(super) async fn run(args: &ImportArgs) -> Result<(), Failure> {
    let export = read(args)?;
    let (meta, outside) = (export.meta.clone(), export.outside());
    let store = args.place.open(Copied::Refuse).await?;
    args.loss.check(store.as_ref()).await?;
    let had_keys = has_keys(store.as_ref()).await?;
    let imported = match import(store.as_ref(), export, unix_ms()).await {
        Ok(imported) => imported,
        Err(error) => {
            // What was written stays. If the store does not say, the worse is told.
            if !had_keys && has_keys(store.as_ref()).await.unwrap_or(true) {
                tell_of_keys(Some(ImportedKeys::InForce));
            }
            return Err(failure(error, &meta));
        }
    };
    let Imported { records, quarantine, was_live, keys, .. } = imported;
    tell_of_keys(keys);
    args.loss.settle(store.as_ref()).await?;
    say(format_args!("imported {} into {store}", count(records, "record")));
    tell_of_outsiders(outside, &meta);
    tell_of_quarantine(quarantine, was_live);
    let poisoned = poisoned(store.as_ref()).await?;
    if args.json {
        let mut data = Data::new();
        data.json(&ImportReport { records, quarantine, poisoned })?;
        data.flush()?;
    }
    Ok(())
}

/// Whether the store has API keys.
async fn has_keys(store: &dyn Store) -> Result<bool, Failure> {
    let entries = store.list(Group::Keys).await?;
    Ok(entries.iter().any(|entry| matches!(entry.found, Found::Known(_))))
}

fn read(args: &ImportArgs) -> Result<Export, Failure> {
    let file = args.file.display();
    let unreadable =
        |error: io::Error| Failure::usage(format_args!("{file} cannot be read: {error}"));
    let input: Box<dyn Read> = match args.file.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(fs::File::open(&args.file).map_err(unreadable)?),
    };
    Export::read(&mut BufReader::new(input)).map_err(|error| match error {
        ExportError::Unreadable(error) => unreadable(error),
        ExportError::NewerFormat => Failure::new(Exit::Refused, error),
        error => Failure::usage(error),
    })
}

fn failure(error: ImportError, exported: &Meta) -> Failure {
    match error {
        ImportError::Store(error) => error.into(),
        ImportError::OtherPool(there) => Failure::new(
            Exit::Refused,
            format_args!(
                "the namespace has layout {} and workers {} to {}, the export {} and {} to {}: \
                 import into a store that does not have the namespace yet",
                there.layout,
                there.first_worker,
                there.last_worker,
                exported.layout,
                exported.first_worker,
                exported.last_worker
            ),
        ),
        ImportError::Held(slot) => {
            let why = format!("{} is held: import while no node runs", Called(&slot));
            Failure::new(Exit::Refused, why)
        }
        ImportError::SlotChanged(slot) => {
            let why = format!("{} changed meanwhile: import while no node runs", Called(&slot));
            Failure::new(Exit::No, why)
        }
        error => Failure::new(Exit::No, error),
    }
}

fn tell_of_keys(keys: Option<ImportedKeys>) {
    match keys {
        None => {}
        Some(ImportedKeys::LeftOut) => {
            say("the API keys of the store stay as they are: those of the export are left out");
        }
        Some(ImportedKeys::InForce) => say(
            "the API keys of the export are in force again, those revoked since too: frazil key ls",
        ),
    }
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
async fn poisoned(store: &dyn Store) -> Result<Vec<u32>, Failure> {
    let Some(meta) = store.meta().await? else {
        return Err(Failure::new(Exit::No, ImportError::Gone));
    };
    let pool = Pool::read(store, meta, unix_ms()).await?;
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
