//! Short words for what the tests of files do.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use frazil_coord::Copied;
use frazil_coord::internal::stores::file::FileStore;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Ask, Choice, Claim, FORMAT, Leasing, Tenure};
use frazil_coord::{
    Entry, Error, Meta, Namespace, Nonce, Presence, Put, Slot, Store, StoreUrl, Token, Version,
};

pub(crate) const WINDOW_MS: u64 = 600_000;

pub(crate) fn url(directory: &Path) -> StoreUrl {
    format!("file:{}", directory.display()).parse().unwrap()
}

pub(crate) async fn try_open(directory: &Path, copied: Copied) -> Result<FileStore, Error> {
    FileStore::open(&url(directory), &Namespace::default(), copied).await
}

/// Opens the store, with its meta record written.
pub(crate) async fn open(directory: &Path) -> FileStore {
    let store = try_open(directory, Copied::Refuse).await.unwrap();
    if store.meta().await.unwrap().is_none() {
        assert!(matches!(store.put_meta(None, &meta()).await, Ok(Put::Done(_))));
    }
    store
}

pub(crate) fn meta() -> Meta {
    Meta {
        format: FORMAT,
        incarnation: Nonce::from_bits(1),
        layout: "test".into(),
        first_worker: 0,
        last_worker: 7,
        window_ms: WINDOW_MS,
        quarantine: 0,
        token_floor: Token::default(),
        created: 1,
    }
}

/// A claim of the slot as it is, at a time when its floor has passed.
pub(crate) async fn claim(store: &FileStore, slot: &Slot, now: u64) -> Claim {
    let version = entry(store, slot).await.map_or(Version(0), |entry| entry.version);
    Claim {
        choice: Choice::This(slot.clone(), version),
        nonce: Nonce::mint().unwrap(),
        holder: "test".into(),
        info: BTreeMap::new(),
        ttl: Duration::from_millis(50),
        now,
        ask: now + 60_000,
        window_ms: WINDOW_MS,
        quarantine: 0,
        meta: store.meta().await.unwrap().unwrap().version,
    }
}

pub(crate) async fn take(store: &FileStore, slot: &Slot, now: u64) -> Tenure {
    loop {
        match store.acquire(&claim(store, slot, now).await).await.unwrap() {
            Acquired::Held(tenure) => return tenure,
            // Another test may be starting a process, which has a copy of every lock until it runs.
            Acquired::Taken => tokio::task::yield_now().await,
            other => panic!("wanted a tenure, got {other:?}"),
        }
    }
}

pub(crate) fn ask(horizon: u64) -> Ask {
    Ask { horizon, ttl: Duration::from_millis(50), now: unix_ms(), window_ms: WINDOW_MS }
}

pub(crate) async fn entry(store: &FileStore, slot: &Slot) -> Option<Entry> {
    store.list(slot.group()).await.unwrap().into_iter().find(|entry| entry.slot == *slot)
}

pub(crate) async fn is_held(store: &FileStore, slot: &Slot) -> bool {
    entry(store, slot).await.is_some_and(|entry| entry.presence != Presence::Free)
}
