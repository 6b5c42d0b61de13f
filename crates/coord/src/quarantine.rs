//! The quarantine of a namespace, as an operator raises it.

use crate::error::Error;
use crate::protocol::Leasing;
use crate::record::{Meta, Record, UnixMs, Versioned};
use crate::rules::WINDOW_MAX_MS;
use crate::slot::{Group, Slot};
use crate::store::{Found, Presence, Put, Store};

/// Added to a window: clocks of different machines differ.
const SKEW_MS: u64 = 2000;

/// For how long a holder whose record was lost may still issue IDs, in a namespace with this window.
#[must_use]
pub fn longest_use_ms(window_ms: u64) -> u64 {
    window_ms.min(WINDOW_MAX_MS) + SKEW_MS
}

/// Raises the quarantine to a time; it is never lowered. Gives what it is then; `None` if the namespace is
/// gone.
///
/// # Errors
/// If the store fails.
pub async fn raise(
    store: &dyn Store,
    mut meta: Versioned<Meta>,
    until: UnixMs,
) -> Result<Option<UnixMs>, Error> {
    while meta.value.quarantine < until {
        let raised = Meta { quarantine: until, ..meta.value };
        match store.put_meta(Some(meta.version), &raised).await? {
            Put::Done(_) => return Ok(Some(until)),
            Put::Conflict => match store.meta().await? {
                Some(newer) => meta = newer,
                None => return Ok(None),
            },
        }
    }
    Ok(Some(meta.value.quarantine))
}

/// Ends the tenures of holders that are not there. A store that was restored from a backup knows
/// holders again that were succeeded since: they could go on over their successors' times. Gives the slots
/// that are held, each with its holder: they stay as they are.
///
/// # Errors
/// If the store fails; what was written stays.
pub async fn forget_holders(store: &dyn Store) -> Result<Vec<(Slot, String)>, Error> {
    let mut held = Vec::new();
    for group in Group::ALL.iter().copied() {
        for entry in store.list(group).await? {
            let Found::Known(record) = entry.found else { continue };
            if record.nonce.is_none() {
                continue;
            }
            let is_held = entry.presence != Presence::Free;
            let ended = Record { nonce: None, expires: None, ..record };
            if is_held || store.put(&entry.slot, entry.version, &ended).await? == Put::Conflict {
                held.push((entry.slot, ended.holder));
            }
        }
    }
    Ok(held)
}
