//! Slots whose record is lost get a new one that blocks them for as long as a holder may still
//! use times, and no longer.

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
    let mut mended = 0;
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
        mended += usize::from(matches!(put, Put::Done(_)));
    }
    Ok(mended)
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
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lease::{Acquired, Choice, Tenure};
    use crate::nonce::Nonce;
    use crate::record::{FORMAT, Meta, Version};
    use crate::slot::Slot;
    use crate::stores::memory::MemoryStore;

    /// A store with a pool of two, and a claim of the first at a time.
    async fn store(now: UnixMs) -> (MemoryStore, Claim) {
        let store = MemoryStore::new();
        let meta = Meta {
            format: FORMAT,
            incarnation: Nonce::from_bits(1),
            layout: "layout".into(),
            first_worker: 0,
            last_worker: 1,
            window_ms: 60_000,
            quarantine: 0,
            token_floor: Token::default(),
            created: 1000,
        };
        let Put::Done(meta_version) = store.put_meta(None, &meta).await.unwrap() else {
            panic!("meta is there already");
        };
        let claim = Claim {
            choice: Choice::This(Slot::worker(0), Version(0)),
            nonce: Nonce::from_bits(2),
            holder: "me".into(),
            info: std::collections::BTreeMap::new(),
            ttl: Duration::from_secs(1),
            now,
            ask: now + 60_000,
            window_ms: meta.window_ms,
            quarantine: 0,
            meta: meta_version,
        };
        (store, claim)
    }

    async fn take(store: &MemoryStore, claim: &Claim) -> Tenure {
        match store.acquire(claim).await.unwrap() {
            Acquired::Held(tenure) => tenure,
            other => panic!("{other:?}"),
        }
    }

    async fn horizon(store: &MemoryStore, slot: &Slot) -> UnixMs {
        let entries = store.list(Group::Workers).await.unwrap();
        let entry = entries.into_iter().find(|entry| entry.slot == *slot).unwrap();
        let Found::Known(record) = entry.found else { panic!("{entry:?}") };
        record.horizon
    }

    #[tokio::test]
    async fn what_replaces_a_lost_record_counts_from_when_the_loss_was_seen() {
        let (store, early) = store(1_000_000).await;
        // The slot is taken and lost while whoever is to mend it was paused for an hour.
        let now = early.now + 3_600_000;
        let late = Claim { nonce: Nonce::from_bits(3), now, ask: now + 60_000, ..early.clone() };
        let tenure = take(&store, &late).await;
        store.lose(&tenure.slot);
        assert_eq!(lost_records(&store, &early, || now).await, Ok(1));
        let horizon = horizon(&store, &tenure.slot).await;
        assert!(horizon >= tenure.horizon, "a successor would start below it");
    }

    #[tokio::test]
    async fn a_clock_that_is_behind_those_of_the_holders_does_not_lower_a_floor() {
        for (theirs, counted) in [(30_000, 30_000), (3_600_000, 60_000)] {
            let (store, ours) = store(1_000_000).await;
            let now = ours.now + theirs;
            let lost = Claim { now, ask: now + 60_000, ..ours.clone() };
            let choice = Choice::This(Slot::worker(1), Version(0));
            let kept = Claim { choice, nonce: Nonce::from_bits(3), ..lost.clone() };
            let tenure = take(&store, &lost).await;
            take(&store, &kept).await;
            store.lose(&tenure.slot);
            assert_eq!(lost_records(&store, &ours, || ours.now).await, Ok(1));
            // But a clock that is hopelessly wrong blocks the slot for no longer than a window more.
            let horizon = horizon(&store, &tenure.slot).await;
            assert_eq!(horizon, ours.now + counted + 60_000, "{theirs} ms ahead");
        }
    }
}
