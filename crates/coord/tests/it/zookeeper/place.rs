//! Servers, namespaces and claims for the tests, and a client that looks behind the store.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use frazil_coord::internal::stores::zookeeper::ZooKeeperStore;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Ask, Choice, Claim, FORMAT, Leasing, Tenure};
use frazil_coord::{Error, Meta, Namespace, Nonce, Put, Slot, Store, Token, Version};
use frazil_rig::ZooKeeper;
use frazil_zookeeper as zk;

/// The window limit in the tests.
pub(crate) const WINDOW_MS: u64 = 600_000;

/// A server that no test hurts.
pub(crate) fn server() -> &'static ZooKeeper {
    static SERVER: OnceLock<ZooKeeper> = OnceLock::new();
    SERVER.get_or_init(|| ZooKeeper::start().unwrap())
}

/// A namespace of its own, and where to find it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) namespace: Namespace,
    /// What looks behind the store.
    pub(crate) control: zk::Client,
}

impl Place {
    /// A new namespace on the servers at this address.
    pub(crate) async fn new(address: &str) -> Self {
        let namespace = format!("ns-{}", Nonce::mint().unwrap()).parse().unwrap();
        Self { namespace, control: control(address).await }
    }

    /// A client of the store through this address, with these options.
    pub(crate) async fn try_open(
        &self,
        address: &str,
        options: &str,
    ) -> Result<ZooKeeperStore, Error> {
        let url = format!("zk://{address}/tests?{options}").parse().unwrap();
        ZooKeeperStore::connect(&url, &self.namespace).await
    }

    pub(crate) async fn open(&self, address: &str, options: &str) -> ZooKeeperStore {
        self.try_open(address, options).await.unwrap()
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/tests/{}/{rest}", self.namespace)
    }

    pub(crate) fn own(&self, slot: &Slot) -> String {
        self.path(&format!("own/{}-{}", slot.group().letter(), slot.name()))
    }

    /// Which session is present in the slot.
    pub(crate) async fn owner(&self, slot: &Slot) -> Option<i64> {
        self.control.sync("/").await.unwrap();
        let stat = self.control.exists(&self.own(slot)).await.unwrap();
        stat.map(|stat| stat.ephemeral_owner)
    }

    /// Waits until nobody is present in the slot.
    pub(crate) async fn wait_until_free(&self, slot: &Slot) {
        let limit = Duration::from_secs(20);
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        let gone = async {
            while self.owner(slot).await.is_some() {
                looks.tick().await;
            }
        };
        tokio::time::timeout(limit, gone).await.expect("the session ends");
    }
}

pub(crate) async fn control(address: &str) -> zk::Client {
    zk::Client::connect(&settings(address)).await.unwrap()
}

/// Settings for a session of the longest kind with the servers at these addresses.
pub(crate) fn settings(addresses: &str) -> zk::Config {
    let host = |address: &str| {
        let (host, port) = address.rsplit_once(':').unwrap();
        (host.to_owned(), port.parse().unwrap())
    };
    let mut settings = zk::Config::new(addresses.split(',').map(host).collect::<Vec<_>>());
    settings.session_timeout = Duration::from_secs(60);
    settings
}

/// Everybody may do everything.
pub(crate) const ANYONE: [zk::Acl; 1] = [zk::Acl::anyone(zk::Permissions::ALL)];

/// Writes meta.
pub(crate) async fn begin(store: &dyn Store) -> Version {
    match store.put_meta(None, &meta()).await.unwrap() {
        Put::Done(version) => version,
        Put::Conflict => panic!("meta exists"),
    }
}

pub(crate) fn meta() -> Meta {
    Meta {
        format: FORMAT,
        incarnation: Nonce::mint().unwrap(),
        layout: "tests".into(),
        first_worker: 0,
        last_worker: 63,
        window_ms: WINDOW_MS,
        quarantine: 0,
        token_floor: Token::default(),
        created: unix_ms(),
    }
}

pub(crate) fn claim(meta: Version, choice: Choice) -> Claim {
    let now = unix_ms();
    Claim {
        choice,
        nonce: Nonce::mint().unwrap(),
        holder: "a test".into(),
        info: BTreeMap::new(),
        ttl: Duration::from_secs(1),
        now,
        ask: now + 60_000,
        window_ms: WINDOW_MS,
        quarantine: 0,
        meta,
    }
}

pub(crate) fn ask(horizon: u64) -> Ask {
    Ask { horizon, ttl: Duration::from_secs(1), now: unix_ms(), window_ms: WINDOW_MS }
}

pub(crate) async fn take(store: &dyn Store, claim: &Claim) -> Tenure {
    match store.acquire(claim).await.unwrap() {
        Acquired::Held(tenure) => tenure,
        other => panic!("wanted a tenure, got {other:?}"),
    }
}
