//! The removal of a slot that is used no more.

use std::time::Duration;

use super::{ROUNDS_MAX, crowded};
use crate::error::Error;
use crate::lease::Forgotten;
use crate::record::{Meta, Record, UnixMs, Versioned};
use crate::rules;
use crate::slot::Slot;
use crate::store::{Act, Entry, Found, Look, Presence, Put, Store};

pub(super) async fn forget<S: Store + ?Sized>(
    store: &S,
    slot: &Slot,
    now: UnixMs,
) -> Result<Forgotten, Error> {
    for _ in 0..ROUNDS_MAX {
        let look = store.read(std::slice::from_ref(slot)).await?;
        let entry = match judged(&look, slot, look.clock.unwrap_or(now)) {
            Ok(entry) => entry,
            Err(answer) => return Ok(answer),
        };
        // First the floor: whoever finds the slot gone then names a meta that has it.
        let is_kept = match (&entry.found, &look.meta) {
            (Found::Known(record), Some(meta)) => keep_token(store, record, meta).await?,
            // Of a record that is gone, no token is known that could be kept.
            _ => true,
        };
        if is_kept && matches!(store.forget(slot, entry.version).await?, Put::Done(_)) {
            return Ok(Forgotten::Done);
        }
    }
    Err(crowded(store, Act::Forget))
}

/// The slot as it is to be forgotten, or why it is not.
fn judged<'a>(look: &'a Look, slot: &Slot, now: UnixMs) -> Result<&'a Entry, Forgotten> {
    let unused = Entry::unused(slot.clone());
    let known = look.entry(slot).filter(|entry| **entry != unused);
    let entry = known.ok_or(Forgotten::Unknown)?;
    if entry.presence != Presence::Free {
        return Err(Forgotten::Held);
    }
    if let Found::Known(record) = &entry.found {
        let wait_ms = rules::forgettable_after(record, now).saturating_sub(now);
        if wait_ms > 0 {
            return Err(Forgotten::Recent { wait: Duration::from_millis(wait_ms) });
        }
    }
    Ok(entry)
}

/// Raises the floor of tokens to that of a record; `false` if somebody else wrote meta meanwhile.
async fn keep_token<S: Store + ?Sized>(
    store: &S,
    record: &Record,
    meta: &Versioned<Meta>,
) -> Result<bool, Error> {
    if meta.value.token_floor >= record.token {
        return Ok(true);
    }
    let raised = Meta { token_floor: record.token, ..meta.value.clone() };
    Ok(matches!(store.put_meta(Some(meta.version), &raised).await?, Put::Done(_)))
}
