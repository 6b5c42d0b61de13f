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
    // The slot is taken and lost while whoever is to repair it was paused for an hour.
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
