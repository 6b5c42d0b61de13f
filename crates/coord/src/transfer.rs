//! A namespace carried from one store to another: what is exported, and how it is brought in.
//!
//! All of an export is read and checked before anything is written. A horizon or a token that is there
//! already is only raised, and whoever held a slot when it was exported may have gone on since: the
//! namespace is in quarantine for as long as that may be.

mod export;

use std::fmt;

use crate::error::Error;
use crate::protocol::Leasing;
use crate::quarantine;
use crate::record::{Meta, Record, Token, UnixMs, Version, Versioned};
use crate::rules::WINDOW_MAX_MS;
use crate::slot::{Group, Slot};
use crate::store::{Found, Presence, Put, Store};

pub use self::export::{Export, ExportError, ExportLine};

/// What an import did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Imported {
    /// How many records were written.
    pub records: usize,
    /// Until when no worker is used.
    pub quarantine: UnixMs,
    /// Whether slots were held or lost when they were exported.
    pub was_live: bool,
    /// What became of the API keys, if the export has any.
    pub keys: Option<ImportedKeys>,
}

/// What became of the API keys of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedKeys {
    /// Those of the store stay as they are.
    LeftOut,
    /// They are in force again, those revoked since too.
    InForce,
}

/// Why an export cannot be brought in.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// The store fails.
    Store(Error),
    /// The namespace that is there has another layout or other workers.
    OtherPool(Box<Meta>),
    /// Somebody created the namespace meanwhile.
    Created,
    /// Somebody changed the namespace meanwhile.
    Changed,
    /// Somebody uses the namespace that is being brought in.
    InUse,
    /// The namespace is gone.
    Gone,
    /// Somebody holds a slot.
    Held(Slot),
    /// Somebody changed a slot meanwhile.
    SlotChanged(Slot),
}

/// Brings an export in.
///
/// # Errors
/// If the store fails, or somebody uses the namespace. What was written stays, and until the import was
/// repeated nobody may use a namespace that it has created.
pub async fn import(
    store: &dyn Store,
    export: Export,
    now: UnixMs,
) -> Result<Imported, ImportError> {
    // Whoever held a worker may have gone on since, and nobody knows about a lost record.
    let is_live =
        |record: &Option<Record>| record.as_ref().is_none_or(|record| record.nonce.is_some());
    let was_live = export.records.iter().any(|(_, record)| is_live(record));
    let mut quarantine = export.meta.quarantine;
    if was_live {
        let lasts_ms = quarantine::longest_use_ms(export.meta.window_ms);
        quarantine = quarantine.max(now.saturating_add(lasts_ms));
    }
    // Until the last record is there nobody may use the namespace, should this end half-way.
    let unfinished = now.saturating_add(WINDOW_MAX_MS);
    let created = Meta { quarantine: unfinished.max(quarantine), ..export.meta };
    let (meta, is_new) = agree(store, &created).await?;
    let created = Meta { token_floor: meta.value.token_floor, ..created };
    let quarantine = match is_new {
        true => quarantine,
        false => quarantine::raise(store, meta, quarantine).await?.ok_or(ImportError::Gone)?,
    };
    let mut imported = Imported { records: 0, quarantine, was_live, keys: None };
    for (slot, record) in export.records {
        if let Some(record) = record {
            bring(store, &slot, record, &mut imported).await?;
        }
    }
    if is_new {
        finish(store, &created, quarantine).await?;
    }
    Ok(imported)
}

/// The version to replace when a pool is created in a namespace that has none yet: that of the meta
/// record that elections left there, or none.
#[must_use]
pub fn version_to_fill(meta: Option<&Versioned<Meta>>) -> Option<Version> {
    meta.filter(|meta| meta.value.is_blank()).map(|meta| meta.version)
}

/// The meta record of a pool that is created where there were elections at most: their tokens go on to
/// rise, those of forgotten ones too.
#[must_use]
pub fn over_blank(meta: Meta, known: Option<&Versioned<Meta>>) -> Meta {
    let floor = known.map(|known| known.value.token_floor).unwrap_or_default();
    Meta { token_floor: meta.token_floor.max(floor), ..meta }
}

/// The namespace's meta, which must agree with the export's; created from it if there is none,
/// and whether it was.
async fn agree(store: &dyn Store, exported: &Meta) -> Result<(Versioned<Meta>, bool), ImportError> {
    let known = store.meta().await?;
    let blank = version_to_fill(known.as_ref());
    let created = over_blank(exported.clone(), known.as_ref());
    if let Some(meta) = known.filter(|meta| !meta.value.is_blank()) {
        let agrees =
            meta.value.layout == exported.layout && meta.value.workers() == exported.workers();
        return match agrees {
            true => Ok((with_token_floor(store, meta, exported.token_floor).await?, false)),
            false => Err(ImportError::OtherPool(Box::new(meta.value))),
        };
    }
    match store.put_meta(blank, &created).await? {
        Put::Done(version) => Ok((Versioned { version, value: created }, true)),
        Put::Conflict => Err(ImportError::Created),
    }
}

/// Meta with a floor of tokens that is at least this: elections that the export has forgotten may be
/// held again.
async fn with_token_floor(
    store: &dyn Store,
    meta: Versioned<Meta>,
    floor: Token,
) -> Result<Versioned<Meta>, ImportError> {
    if meta.value.token_floor >= floor {
        return Ok(meta);
    }
    let raised = Meta { token_floor: floor, ..meta.value };
    match store.put_meta(Some(meta.version), &raised).await? {
        Put::Done(version) => Ok(Versioned { version, value: raised }),
        Put::Conflict => Err(ImportError::Changed),
    }
}

/// Opens a namespace that this import has created: its quarantine comes down to what is needed.
async fn finish(store: &dyn Store, created: &Meta, quarantine: UnixMs) -> Result<(), ImportError> {
    let meta = store.meta().await?.filter(|meta| meta.value == *created);
    let opened = Meta { quarantine, ..created.clone() };
    let put = match meta {
        Some(meta) => store.put_meta(Some(meta.version), &opened).await?,
        None => Put::Conflict,
    };
    match put {
        Put::Done(_) => Ok(()),
        Put::Conflict => Err(ImportError::InUse),
    }
}

/// Writes one record; an existing horizon or token is only raised.
async fn bring(
    store: &dyn Store,
    slot: &Slot,
    record: Record,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let entries = store.list(slot.group()).await?;
    let entry = entries.into_iter().find(|entry| entry.slot == *slot);
    let version = entry.as_ref().map_or(Version(0), |entry| entry.version);
    let record = if slot.group() == Group::Keys {
        if let Some(Found::Known(_)) = entry.map(|entry| entry.found) {
            imported.keys = Some(ImportedKeys::LeftOut);
            return Ok(());
        }
        imported.keys = Some(ImportedKeys::InForce);
        record
    } else {
        if entry.as_ref().is_some_and(|entry| entry.presence != Presence::Free) {
            return Err(ImportError::Held(slot.clone()));
        }
        let mut record = Record { nonce: None, expires: None, ..record };
        if let Some(Found::Known(old)) = entry.map(|entry| entry.found) {
            record.horizon = record.horizon.max(old.horizon);
            record.token = record.token.max(old.token);
        }
        record
    };
    match store.put(slot, version, &record).await? {
        Put::Done(_) => {
            imported.records += 1;
            Ok(())
        }
        Put::Conflict => Err(ImportError::SlotChanged(slot.clone())),
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::OtherPool(there) => write!(
                f,
                "the namespace has layout {} and workers {} to {}, and the export others",
                there.layout, there.first_worker, there.last_worker
            ),
            Self::Created => f.write_str("the namespace was created meanwhile: import again"),
            Self::Changed => f.write_str("the namespace was changed meanwhile: import again"),
            Self::InUse => {
                f.write_str("the namespace was changed meanwhile: import again while no node runs")
            }
            Self::Gone => f.write_str("the namespace is gone: import again"),
            Self::Held(slot) => write!(f, "{slot} is held: import while no node runs"),
            Self::SlotChanged(slot) => {
                write!(f, "{slot} changed meanwhile: import while no node runs")
            }
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its text is that of the error, so what comes next is what that rests on.
            Self::Store(error) => error.source(),
            _ => None,
        }
    }
}

impl From<Error> for ImportError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests;
