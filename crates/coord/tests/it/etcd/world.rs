//! Short words for what the tests do.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use frazil_coord::internal::stores::etcd::EtcdStore;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Ask, Choice, Claim, Extended, FORMAT, Leasing, Tenure};
use frazil_coord::{
    Error, Group, Meta, Namespace, Nonce, Presence, Put, Slot, Store, StoreUrl, Token, Version,
};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const WINDOW_MS: u64 = 600_000;

pub(crate) fn namespace() -> Namespace {
    format!("t-{}", Nonce::mint().unwrap()).parse().unwrap()
}

/// The error of connecting.
pub(crate) async fn refusal(url: &str) -> Error {
    EtcdStore::connect(&url.parse().unwrap(), &namespace()).await.unwrap_err()
}

pub(crate) async fn connect(url: &str, namespace: &Namespace) -> EtcdStore {
    let url: StoreUrl = url.parse().unwrap();
    EtcdStore::connect(&url, namespace).await.unwrap()
}

/// A connection to a new namespace that has meta.
pub(crate) async fn open(url: &str) -> (EtcdStore, Namespace, Version) {
    let namespace = namespace();
    let store = connect(url, &namespace).await;
    let version = init(&store).await;
    (store, namespace, version)
}

pub(crate) async fn init(store: &dyn Store) -> Version {
    match store.put_meta(None, &meta()).await.unwrap() {
        Put::Done(version) => version,
        Put::Conflict => panic!("meta exists"),
    }
}

pub(crate) fn meta() -> Meta {
    Meta {
        format: FORMAT,
        incarnation: Nonce::mint().unwrap(),
        layout: "test".into(),
        first_worker: 0,
        last_worker: 1023,
        window_ms: WINDOW_MS,
        quarantine: 0,
        token_floor: Token::default(),
        created: unix_ms(),
    }
}

pub(crate) fn claim(choice: Choice, meta: Version) -> Claim {
    let now = unix_ms();
    Claim {
        choice,
        nonce: Nonce::mint().unwrap(),
        holder: "test".into(),
        info: BTreeMap::new(),
        ttl: Duration::from_secs(30),
        now,
        ask: now + 90_000,
        window_ms: WINDOW_MS,
        quarantine: 0,
        meta,
    }
}

pub(crate) fn any(meta: Version) -> Claim {
    claim(Choice::Any { first: 0, last: 1023, favourite: None }, meta)
}

pub(crate) async fn take(store: &dyn Store, claim: &Claim) -> Tenure {
    match store.acquire(claim).await.unwrap() {
        Acquired::Held(tenure) => tenure,
        other => panic!("wanted a tenure, got {other:?}"),
    }
}

/// An extension by 2 minutes from now.
pub(crate) fn ask(ttl: Duration) -> Ask {
    let now = unix_ms();
    Ask { horizon: now + 120_000, ttl, now, window_ms: WINDOW_MS }
}

pub(crate) async fn extend(store: &dyn Store, tenure: &Tenure) -> Tenure {
    match store.extend(tenure, &ask(Duration::from_secs(30))).await.unwrap() {
        Extended::Held(tenure) => tenure,
        Extended::Lost(loss) => panic!("lost: {loss:?}"),
    }
}

/// Who is present, by name.
pub(crate) async fn held(store: &dyn Store) -> Vec<Slot> {
    let entries = store.list(Group::Workers).await.unwrap();
    let held = entries.into_iter().filter(|entry| entry.presence != Presence::Free);
    held.map(|entry| entry.slot).collect()
}

/// Asks until the answer is one.
pub(crate) async fn until<T, F, R>(what: &str, mut ask: F) -> T
where
    F: FnMut() -> R,
    R: Future<Output = Option<T>>,
{
    let asking = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("in vain: {what}"))
}
