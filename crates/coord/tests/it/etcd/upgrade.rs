//! Records of the version before, in which the token comes first and a release is not noted.

use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Choice, Leasing, Released, Tenure};
use frazil_coord::{Found, Group, Namespace, Nonce, Presence, Slot, Store, Token};
use frazil_rig::Etcd;

use crate::etcd::world::{any, claim, connect, extend, namespace, take};

const INCARNATION: &str = "0123456789abcdef0123456789abcdef";
const NONCE: &str = "00000000000000000000000000000abc";

/// A namespace as the version before leaves it: worker 7 is held, worker 8 was released, and the
/// holder of worker 9 is gone.
struct Before {
    etcd: Etcd,
    namespace: Namespace,
    horizon: u64,
    now: u64,
}

impl Before {
    fn start() -> Self {
        let now = unix_ms();
        let etcd = Etcd::start().unwrap();
        let before = Self { etcd, namespace: namespace(), horizon: now + 60_000, now };
        before.put("meta", &format!(
            r#"{{"format":1,"incarnation":"{INCARNATION}","layout":"test","first_worker":7,"last_worker":9,"window_ms":600000,"quarantine":0,"created":{now}}}"#
        ), None);
        before.record("w/7", &format!("\"{NONCE}\""), before.horizon);
        before.record("w/8", "null", now - 1000);
        before.record("w/9", "\"00000000000000000000000000000def\"", now - 500);
        let granted = before.etcd.etcdctl(&["lease", "grant", "60"]).unwrap();
        let lease = granted.split(' ').nth(1).unwrap();
        before.put("own/w/7", NONCE, Some(lease));
        before.put(&format!("claim/{NONCE}"), "w/7", Some(lease));
        before
    }

    fn record(&self, slot: &str, nonce: &str, horizon: u64) {
        let token = self.now - 5000;
        self.put(slot, &format!(
            r#"{{"token":{token},"nonce":{nonce},"holder":"before","floor":5,"horizon":{horizon},"renewed":{token},"info":{{"host":"here"}}}}"#
        ), None);
        self.put(&format!("born/{slot}"), &token.to_string(), None);
    }

    fn put(&self, key: &str, value: &str, lease: Option<&str>) {
        let key = format!("/frazil/{}/{key}", self.namespace);
        let lease = format!("--lease={}", lease.unwrap_or("0"));
        self.etcd.etcdctl(&["put", &lease, "--", &key, value]).unwrap();
    }

    /// What the holder of worker 7 knows.
    async fn tenure(&self, store: &dyn Store) -> Tenure {
        let entry = store.read(&[Slot::worker(7)]).await.unwrap().entries.remove(0);
        assert_ne!(entry.presence, Presence::Free);
        Tenure {
            slot: entry.slot,
            token: Token(self.now - 5000),
            nonce: NONCE.parse().unwrap(),
            holder: "before".into(),
            info: [("host".into(), "here".into())].into(),
            version: entry.version,
            floor: 5,
            horizon: self.horizon,
            renewed: 0,
            usable: self.horizon,
            expires: None,
            store_now: None,
            incarnation: INCARNATION.parse().unwrap(),
            settling: frazil_coord::internal::Settling::default(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_goes_on_over_a_record_of_the_version_before() {
    let before = Before::start();
    let store = connect(&before.etcd.url(), &before.namespace).await;
    let tenure = before.tenure(&store).await;
    let extended = extend(&store, &extend(&store, &tenure).await).await;
    assert!(extended.horizon > tenure.horizon, "{extended:?}");
    assert_eq!(store.release(&extended, before.now).await.unwrap(), Released::Done);
    assert_eq!(store.release(&tenure, before.now).await.unwrap(), Released::Done);
    let left = before.etcd.etcdctl(&["get", "--prefix", "--keys-only", "/frazil/"]).unwrap();
    assert!(!left.contains("claim/") && !left.contains("own/"), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_over_a_record_of_the_version_before_frees_it() {
    let before = Before::start();
    let store = connect(&before.etcd.url(), &before.namespace).await;
    let tenure = before.tenure(&store).await;
    let forged = Tenure { nonce: Nonce::mint().unwrap(), ..tenure.clone() };
    assert_eq!(store.release(&forged, before.now).await.unwrap(), Released::NotHeld);
    assert_eq!(store.release(&tenure, before.now).await.unwrap(), Released::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn free_workers_of_the_version_before_are_taken_above_their_horizons() {
    let before = Before::start();
    let store = connect(&before.etcd.url(), &before.namespace).await;
    let meta = store.meta().await.unwrap().unwrap();
    let range = || Choice::Any { first: 7, last: 9, favourite: None };
    let first = take(&store, &claim(range(), meta.version)).await;
    assert_eq!((first.slot, first.floor), (Slot::worker(8), before.now - 1000));
    let second = take(&store, &claim(range(), meta.version)).await;
    assert_eq!((second.slot, second.floor), (Slot::worker(9), before.now - 500));
    for entry in store.list(Group::Workers).await.unwrap() {
        assert!(matches!(entry.found, Found::Known(_)), "{entry:?}");
        assert_ne!(entry.presence, Presence::Free);
    }
    let full = store.acquire(&claim(range(), meta.version)).await.unwrap();
    assert!(
        matches!(full, frazil_coord::internal::Acquired::Full(census) if census.held == 3),
        "{full:?}"
    );
    // Others are left where they are.
    take(&store, &any(meta.version)).await;
}
