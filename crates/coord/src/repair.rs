//! The repair of slots whose record is lost: each gets a new record that blocks it for as long as its
//! last holder may still use times.

use crate::error::Error;
use crate::lease::Claim;
use crate::protocol::Leasing;
use crate::record::{Record, Token, UnixMs};
use crate::rules::floor_of;
use crate::slot::Group;
use crate::store::{Entry, Found, History, Presence, Put, Store};

/// Writes a record for every free slot that lost its own; gives how many.
///
/// The time is asked for after the losses were seen: nobody can have been promised anything in a
/// slot since it was lost, and whatever was promised before is within a window of then. A time
/// read earlier, before a pause, could be too low.
///
/// It is the store's time where the store has one: holders are checked against that. Elsewhere our
/// clock may be behind those of the holders, so the latest renewal counts if it is later.
///
/// # Errors
/// If the store fails; what was written stays.
pub async fn lost_records(
    store: &dyn Store,
    claim: &Claim,
    now: impl Fn() -> UnixMs + Send,
) -> Result<usize, Error> {
    let mut repaired = 0;
    let entries = store.list(Group::Workers).await?;
    let seen_at = match store.time().await? {
        Some(time) => time,
        None => latest(&entries, now().max(claim.now), claim.window_ms),
    };
    let claim = Claim { now: seen_at, ..claim.clone() };
    for entry in entries {
        if entry.found != Found::Lost || entry.presence != Presence::Free {
            continue;
        }
        let put = store.put(&entry.slot, entry.version, &replacement(&claim)).await?;
        repaired += usize::from(matches!(put, Put::Done(_)));
    }
    Ok(repaired)
}

/// The latest of our clock and all renewals, but no more than a window from our clock: one record
/// that was stamped by a clock gone astray must not block others for good.
fn latest(entries: &[Entry], now: UnixMs, window_ms: u64) -> UnixMs {
    let renewals = entries.iter().filter_map(|entry| match &entry.found {
        Found::Known(record) => Some(record.renewed),
        Found::New | Found::Lost => None,
    });
    renewals.max().unwrap_or(0).clamp(now, now.saturating_add(window_ms))
}

/// The record of a slot that nobody knows anything about.
#[must_use]
pub fn replacement(claim: &Claim) -> Record {
    Record {
        token: Token(claim.now),
        nonce: None,
        holder: "record lost".into(),
        floor: 0,
        horizon: floor_of(&Found::Lost, claim, &History::default()),
        renewed: claim.now,
        expires: None,
        released: false,
        info: std::collections::BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests;
