//! What the tests share: clients, claims, and ways to look.

use std::collections::BTreeMap;
use std::time::Duration;

use frazil_coord::internal::stores::redis::RedisStore;
use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_coord::internal::{Acquired, Ask, Choice, Claim, Extended, FORMAT, Leasing, Tenure};
use frazil_coord::{Error, Meta, Namespace, Nonce, Put, Store, StoreUrl, Token, Version};
use frazil_rig::{Redis, wait_until};

/// How long a test waits for what must come: longer than newcomers wait after a restart.
pub(crate) const LIMIT: Duration = Duration::from_secs(50);

/// A client's place: a URL and a namespace.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) namespace: Namespace,
    pub(crate) window_ms: u64,
}

impl Place {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        let namespace = "lab".parse().unwrap();
        Self { url: url.into(), namespace, window_ms: 600_000 }
    }

    pub(crate) fn window(self, window_ms: u64) -> Self {
        Self { window_ms, ..self }
    }

    pub(crate) async fn try_open(&self) -> Result<RedisStore, Error> {
        let url: StoreUrl = self.url.parse().unwrap();
        RedisStore::connect(&url, &self.namespace).await
    }

    pub(crate) async fn open(&self) -> RedisStore {
        self.try_open().await.unwrap()
    }

    pub(crate) fn meta(&self) -> Meta {
        Meta {
            format: FORMAT,
            incarnation: Nonce::mint().unwrap(),
            layout: "lab".into(),
            first_worker: 0,
            last_worker: 1023,
            window_ms: self.window_ms,
            quarantine: 0,
            token_floor: Token::default(),
            created: unix_ms(),
        }
    }

    /// Creates meta.
    pub(crate) async fn found(&self, store: &RedisStore) -> Version {
        match store.put_meta(None, &self.meta()).await.unwrap() {
            Put::Done(version) => version,
            Put::Conflict => panic!("meta is there already"),
        }
    }

    pub(crate) fn claim(&self, choice: Choice, meta: Version) -> Claim {
        let now = unix_ms();
        Claim {
            choice,
            nonce: Nonce::mint().unwrap(),
            holder: "somebody".into(),
            info: BTreeMap::new(),
            ttl: Duration::from_secs(30),
            now,
            ask: now + self.window_ms,
            window_ms: self.window_ms,
            quarantine: 0,
            meta,
        }
    }

    pub(crate) fn ask(&self) -> Ask {
        let now = unix_ms();
        let (horizon, window_ms) = (now + self.window_ms, self.window_ms);
        Ask { horizon, ttl: Duration::from_secs(30), now, window_ms }
    }
}

/// Any of these workers.
pub(crate) fn any(first: u32, last: u32) -> Choice {
    Choice::Any { first, last, favourite: None }
}

pub(crate) async fn take(store: &RedisStore, claim: &Claim) -> Tenure {
    match store.acquire(claim).await.unwrap() {
        Acquired::Held(tenure) => tenure,
        other => panic!("wanted a tenure, got {other:?}"),
    }
}

/// Looks again and again until there is something to see.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    let looking = async {
        loop {
            pause.tick().await;
            if let Some(seen) = look().await {
                return seen;
            }
        }
    };
    let seen = tokio::time::timeout(LIMIT, looking).await;
    seen.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// A replica that the master counts: a new one is in sync a while before it first confirms.
pub(crate) fn replica_of(master: &Redis) -> Redis {
    let replica = Redis::builder().replica_of(master).start().unwrap();
    let confirms = || master.cli(&["WAIT", "1", "100"]).unwrap() == "1\n";
    wait_until("the replica to confirm", LIMIT, confirms).unwrap();
    replica
}

/// Extends, again and again while the store is being promoted: repeating is safe.
pub(crate) async fn extended(store: &RedisStore, tenure: &Tenure, ask: &Ask) -> Extended {
    let limit = boot_time() + Duration::from_secs(60);
    loop {
        match store.extend(tenure, ask).await {
            Ok(extended) => return extended,
            Err(error) if error.kind().is_retryable() && boot_time() < limit => {}
            Err(error) => panic!("{error}"),
        }
    }
}
