//! Every kind of store, each with ways to take it away.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use frazil_coord::Copied;
use frazil_coord::MemoryStore;
use frazil_coord::{Nonce, Store, StoreUrl, open};
use frazil_election::{Candidate, Elections, Settings, store_url};
use frazil_rig::{Etcd, Proxy, Redis, ZooKeeper};

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The kinds of store that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    File,
    Redis,
    Etcd,
    ZooKeeper,
}

/// A namespace of its own in a store of a kind.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) kind: Kind,
    namespace: String,
    memory: MemoryStore,
    directory: tempfile::TempDir,
}

/// A client whose way to the store can be cut.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) elections: Elections,
    pub(crate) proxy: Option<Proxy>,
}

impl Stage {
    pub(crate) fn new(kind: Kind) -> Self {
        let namespace = format!("ns-{}", Nonce::mint().unwrap());
        Self {
            kind,
            namespace,
            memory: MemoryStore::new(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// How the store is reached; `None` for one inside the process.
    pub(crate) fn url(&self) -> Option<String> {
        Some(match self.kind {
            Kind::Memory => return None,
            Kind::File => format!("file:{}", self.path().display()),
            Kind::Redis => format!("redis://{}", self.address().unwrap()),
            Kind::Etcd => format!("etcd://{}", self.address().unwrap()),
            Kind::ZooKeeper => format!("zk://{}", self.address().unwrap()),
        })
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn address(&self) -> Option<String> {
        static REDIS: OnceLock<Redis> = OnceLock::new();
        static ETCD: OnceLock<Etcd> = OnceLock::new();
        static ZOOKEEPER: OnceLock<ZooKeeper> = OnceLock::new();
        match self.kind {
            Kind::Memory | Kind::File => None,
            Kind::Redis => Some(REDIS.get_or_init(|| Redis::start().unwrap()).address()),
            Kind::Etcd => Some(ETCD.get_or_init(|| Etcd::start().unwrap()).address()),
            Kind::ZooKeeper => {
                Some(ZOOKEEPER.get_or_init(|| ZooKeeper::start().unwrap()).address())
            }
        }
    }

    /// A client of its own, as another process would have it.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        self.store_at(self.url(), settings("").ttl).await
    }

    async fn store_at(&self, url: Option<String>, ttl: Duration) -> Arc<dyn Store> {
        let Some(url) = url else { return Arc::new(self.memory.clone()) };
        let url: StoreUrl = url.parse().unwrap();
        let url = store_url(&url, ttl);
        let namespace = self.namespace.parse().unwrap();
        // A server that was just started on a busy machine may be slower than the time-out.
        soon(async {
            loop {
                match open(&url, &namespace, Copied::Refuse).await {
                    Ok(store) => return store,
                    Err(error) => assert!(error.kind().is_retryable(), "{error}"),
                }
            }
        })
        .await
    }

    pub(crate) async fn elections(&self) -> Elections {
        Elections::new(self.store().await)
    }

    pub(crate) async fn candidate(&self, instance: &str) -> Candidate {
        self.elections().await.candidate("job", settings(instance)).unwrap()
    }

    /// A client behind a proxy, where there is a network, for leaders of such a time to live.
    pub(crate) async fn client(&self, ttl: Duration) -> Client {
        let proxy = self.address().map(|address| Proxy::start(address).unwrap());
        let url = match (&proxy, self.url()) {
            (Some(proxy), Some(url)) => {
                let (scheme, _) = url.split_once("://").unwrap();
                Some(format!("{scheme}://{}", proxy.address()))
            }
            (_, url) => url,
        };
        Client { elections: Elections::new(self.store_at(url, ttl).await), proxy }
    }
}

/// Short times, where tests have to wait for them to pass.
pub(crate) fn settings(instance: &str) -> Settings {
    Settings::default()
        .with_ttl(Duration::from_secs(3))
        .with_heartbeat(Duration::from_millis(500))
        .with_retry(Duration::from_millis(500))
        .with_lock_delay(Duration::ZERO)
        .with_instance(if instance.is_empty() { "somebody".into() } else { instance.to_owned() })
}

/// Waits until the leader has renewed twice.
pub(crate) async fn renewals(elections: &Elections) {
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..2 {
        let before = elections.leader("job").await.unwrap().expect("somebody leads").renewed_ms;
        soon(async {
            while elections.leader("job").await.unwrap().is_some_and(|l| l.renewed_ms <= before) {
                looks.tick().await;
            }
        })
        .await;
    }
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it takes too long")
}

/// One test for each kind of store.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        on_every_store!(@ memory, Memory, $($name),+);
        on_every_store!(@ file, File, $($name),+);
        on_every_store!(servers: $($name),+);
    };
    // Those that can be away.
    (servers: $($name:ident),+ $(,)?) => {
        on_every_store!(@ redis, Redis, $($name),+);
        on_every_store!(@ etcd, Etcd, $($name),+);
        on_every_store!(@ zookeeper, ZooKeeper, $($name),+);
    };
    (@ $module:ident, $kind:ident, $($name:ident),+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    let stage = crate::stage::Stage::new(crate::stage::Kind::$kind);
                    Box::pin(super::$name(stage)).await;
                }
            )+
        }
    };
}
pub(crate) use on_every_store;
