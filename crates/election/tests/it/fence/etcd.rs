//! Transactions that compare with an election, on a real etcd.

use std::collections::BTreeMap;
use std::time::Duration;

use frazil_coord::internal::stores::etcd::EtcdStore;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Ask, Choice, Claim, Extended, FORMAT, Leasing, Tenure};
use frazil_coord::{Group, Meta, Namespace, Nonce, Put, Slot, Store, StoreUrl, Token, Version};
use frazil_election::fence::{EtcdCompare, EtcdFence, EtcdTarget};
use frazil_etcd::{Client, Compare, CompareResult, Config, RequestOp, TxnRequest};
use frazil_rig::{Etcd, wait_until};

const WINDOW_MS: u64 = 600_000;

/// An election and a client that writes beside it.
struct Place {
    store: EtcdStore,
    meta: Version,
    client: Client,
    fence: EtcdFence,
}

impl Place {
    async fn open(etcd: &Etcd) -> Self {
        let url: StoreUrl = etcd.url().parse().unwrap();
        let namespace = Namespace::default();
        let store = EtcdStore::connect(&url, &namespace).await.unwrap();
        let Put::Done(meta) = store.put_meta(None, &meta()).await.unwrap() else {
            panic!("the namespace is new")
        };
        let client = Client::new(&etcd.address(), &Config::default()).unwrap();
        Self { store, meta, client, fence: EtcdFence::new(&url, &namespace, "boss").unwrap() }
    }

    async fn elect(&self, holder: &str, ttl: Duration) -> Tenure {
        let slot = Slot::named(Group::Elections, "boss").unwrap();
        let entries = self.store.list(Group::Elections).await.unwrap();
        let version = entries.iter().find(|entry| entry.slot == slot).map(|entry| entry.version);
        let now = unix_ms();
        let claim = Claim {
            choice: Choice::This(slot, version.unwrap_or_default()),
            nonce: Nonce::mint().unwrap(),
            holder: holder.to_owned(),
            info: BTreeMap::new(),
            ttl,
            now,
            ask: now,
            window_ms: WINDOW_MS,
            quarantine: 0,
            meta: self.meta,
        };
        match self.store.acquire(&claim).await.unwrap() {
            Acquired::Held(tenure) => tenure,
            other => panic!("{other:?}"),
        }
    }

    async fn extend(&self, tenure: &Tenure) -> Tenure {
        let now = unix_ms();
        let ttl = Duration::from_secs(10);
        let ask = Ask { horizon: now, ttl, now, window_ms: WINDOW_MS };
        match self.store.extend(tenure, &ask).await.unwrap() {
            Extended::Held(tenure) => tenure,
            Extended::Lost(loss) => panic!("{loss:?}"),
        }
    }

    async fn write(&self, token: Token) -> bool {
        self.write_if(self.fence.compares(token).as_slice()).await
    }

    async fn write_if(&self, compares: &[EtcdCompare]) -> bool {
        let compare = compares.iter().map(told).collect();
        let success = vec![RequestOp::put("guarded", "value")];
        let txn = TxnRequest { compare, success, failure: Vec::new() };
        self.client.txn(&txn).await.unwrap().succeeded
    }
}

/// What a user of a client does with the data.
fn told(compare: &EtcdCompare) -> Compare {
    let key = compare.key.as_str();
    match &compare.target {
        EtcdTarget::ValueIs(value) => Compare::value(key, CompareResult::Equal, value.as_str()),
        EtcdTarget::Exists => Compare::create_revision(key, CompareResult::Greater, 0),
    }
}

fn meta() -> Meta {
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

#[tokio::test(flavor = "multi_thread")]
async fn only_the_present_leader_writes() {
    let etcd = Etcd::start().unwrap();
    let place = Place::open(&etcd).await;
    assert!(!place.write(Token(0)).await && !place.write(Token(1)).await, "nobody leads yet");
    let ttl = Duration::from_secs(10);
    let first = place.elect("first", ttl).await;
    assert!(place.write(first.token).await);
    let first = place.extend(&first).await;
    assert!(place.write(first.token).await, "a renewal changes nothing");
    for other in [first.token.0 - 1, first.token.0 + 1] {
        assert!(!place.write(Token(other)).await);
    }
    place.store.release(&first, first.floor).await.unwrap();
    assert!(!place.write(first.token).await, "who has resigned leads no more");
    let [elected, present] = place.fence.compares(first.token);
    assert!(place.write_if(&[elected]).await, "a broken variant: without presence it still writes");
    let second = place.elect("second", ttl).await;
    assert!(second.token > first.token && place.write(second.token).await);
    assert!(!place.write(first.token).await, "a former leader is refused");
    assert!(place.write_if(&[present]).await, "a broken variant: presence alone is anybody's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_presence_lapsed_is_refused_before_there_is_another() {
    let etcd = Etcd::start().unwrap();
    let place = Place::open(&etcd).await;
    let tenure = place.elect("silent", Duration::from_secs(2)).await;
    assert!(place.write(tenure.token).await);
    let own = "/frazil/default/own/e/boss";
    wait_until("the presence to lapse", Duration::from_secs(20), || {
        etcd.etcdctl(&["get", own]).unwrap().is_empty()
    })
    .unwrap();
    assert!(!place.write(tenure.token).await);
}
