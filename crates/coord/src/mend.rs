//! Slots whose record is lost get a new one that blocks them for as long as a holder may still
//! use times, and no longer.

use crate::error::Error;
use crate::record::{Record, Token, UnixMs};
use crate::rules::floor_of;
use crate::slot::Group;
use crate::store::{Claim, Found, Presence, Put, Store};

/// Writes a record for every free slot that lost its own; gives how many.
///
/// The time is asked for after the losses were seen: nobody can have been promised anything in a
/// slot since it was lost, and whatever was promised before is within a window of then. A time
/// read earlier, before a pause, could be too low.
///
/// # Errors
/// If the store fails; what was written stays.
pub async fn lost_records(
    store: &dyn Store,
    claim: &Claim,
    now: impl Fn() -> UnixMs + Send,
) -> Result<usize, Error> {
    let mut mended = 0;
    let entries = store.list(Group::Workers).await?;
    let claim = Claim { now: now().max(claim.now), ..claim.clone() };
    for entry in entries {
        if entry.found != Found::Lost || entry.presence != Presence::Free {
            continue;
        }
        let put = store.put(&entry.slot, entry.version, &replacement(&claim)).await?;
        mended += usize::from(matches!(put, Put::Done(_)));
    }
    Ok(mended)
}

/// The record of a slot that nobody knows anything about.
#[must_use]
pub fn replacement(claim: &Claim) -> Record {
    Record {
        token: Token(claim.now),
        nonce: None,
        holder: "record lost".into(),
        floor: 0,
        horizon: floor_of(&Found::Lost, claim),
        renewed: claim.now,
        expires: None,
        info: std::collections::BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::nonce::Nonce;
    use crate::record::{FORMAT, Meta};
    use crate::slot::Slot;
    use crate::store::{Acquired, Choice};
    use crate::stores::memory::MemoryStore;

    #[tokio::test]
    async fn what_replaces_a_lost_record_counts_from_when_the_loss_was_seen() {
        let store = MemoryStore::new();
        let meta = Meta {
            format: FORMAT,
            incarnation: Nonce::from_bits(1),
            layout: "layout".into(),
            first_worker: 0,
            last_worker: 0,
            window_ms: 60_000,
            quarantine: 0,
            created: 1000,
        };
        let Put::Done(version) = store.put_meta(None, &meta).await.unwrap() else {
            panic!("meta is there already");
        };
        let slot = Slot::worker(0);
        let early = Claim {
            choice: Choice::Any { first: 0, last: 0, favourite: None },
            nonce: Nonce::from_bits(2),
            holder: "me".into(),
            info: std::collections::BTreeMap::new(),
            ttl: Duration::from_secs(1),
            now: 1_000_000,
            ask: 1_060_000,
            window_ms: meta.window_ms,
            quarantine: 0,
            meta: version,
        };
        // The slot is taken and lost while whoever is to mend it was paused for an hour.
        let now = early.now + 3_600_000;
        let late = Claim { nonce: Nonce::from_bits(3), now, ask: now + 60_000, ..early.clone() };
        let Acquired::Held(tenure) = store.acquire(&late).await.unwrap() else {
            panic!("the slot is free");
        };
        store.lose(&slot);
        assert_eq!(lost_records(&store, &early, || now).await, Ok(1));
        let entry = store.list(Group::Workers).await.unwrap().remove(0);
        let Found::Known(record) = entry.found else { panic!("{entry:?}") };
        assert!(record.horizon >= tenure.horizon, "a successor would start below it");
    }
}
