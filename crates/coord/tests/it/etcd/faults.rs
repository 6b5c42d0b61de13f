//! Networks that lose and delay, leases that run out.

use std::time::Duration;

use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_coord::internal::{Acquired, Choice, Claim, Extended, Leasing};
use frazil_coord::{Changes, ErrorKind, Group, Loss, Slot, Store, Version, Watched};
use frazil_rig::{Etcd, Proxy};
use tokio::task::JoinSet;

use crate::etcd::world::{PATIENCE, any, ask, claim, connect, extend, held, open, take, until};

/// Long enough to see that the server has done it and to throw its reply away.
const REPLY_DELAY: Duration = Duration::from_millis(400);

/// Makes a claim through a proxy that loses the reply to the request that takes the slot.
async fn lose_the_reply(
    etcd: &Etcd,
    proxy: &Proxy,
    claim: &Claim,
    (store, witness): (&dyn Store, &dyn Store),
) -> Result<Acquired, frazil_coord::Error> {
    let mut changes = witness.watch(&Watched::Group(Group::Workers)).await.unwrap();
    proxy.delay_replies(REPLY_DELAY);
    let lose = async {
        changes.next().await.expect("the watch goes on");
        proxy.drop_replies();
    };
    let (acquired, ()) = tokio::join!(store.acquire(claim), lose);
    assert!(etcd.etcdctl(&["get", "--prefix", "/frazil/"]).unwrap().contains("own/w/"));
    proxy.heal();
    acquired
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_reply_is_lost_is_unsure_and_its_repetition_gives_the_same_tenure() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    let (witness, namespace, meta) = open(&etcd.url()).await;
    let store = connect(&format!("etcd://{}?timeout=3s", proxy.address()), &namespace).await;
    let slot = Slot::worker(5);
    let claim = claim(Choice::This(slot.clone(), Version(0)), meta);
    let acquired = lose_the_reply(&etcd, &proxy, &claim, (&store, &witness)).await.unwrap();
    assert_eq!(acquired, Acquired::Unsure(slot.clone(), Version(0)));
    let tenure = take(&store, &claim).await;
    assert_eq!(tenure.nonce, claim.nonce);
    assert_eq!(held(&witness).await, [slot]);
    extend(&store, &tenure).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_any_worker_whose_reply_is_lost_takes_one_worker() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    let (witness, namespace, meta) = open(&etcd.url()).await;
    let store = connect(&format!("etcd://{}?timeout=3s", proxy.address()), &namespace).await;
    let claim = any(meta);
    let lost = lose_the_reply(&etcd, &proxy, &claim, (&store, &witness)).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Unknown, "{lost}");
    let tenure = take(&store, &claim).await;
    assert_eq!(held(&witness).await, [tenure.slot]);
}

/// A frame of HTTP/2 by which a server ends a connection, with a reason.
fn go_away(reason: u8) -> [u8; 17] {
    [0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, reason]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_carried_out_before_the_connection_ends_is_unsure_whatever_ends_it() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    let (witness, namespace, meta) = open(&etcd.url()).await;
    // NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM of none, ENHANCE_YOUR_CALM, INADEQUATE_SECURITY.
    for (worker, reason) in [(1, 0), (2, 2), (3, 7), (4, 0xb), (5, 0xc)] {
        let store = connect(&format!("etcd://{}?timeout=3s", proxy.address()), &namespace).await;
        let slot = Slot::worker(worker);
        let claim = claim(Choice::This(slot.clone(), Version(0)), meta);
        let mut changes = witness.watch(&Watched::Group(Group::Workers)).await.unwrap();
        proxy.delay_replies(REPLY_DELAY);
        let end = async {
            changes.next().await.expect("the watch goes on");
            proxy.hold_replies();
            proxy.disconnect_with(&go_away(reason));
        };
        let (acquired, ()) = tokio::join!(store.acquire(&claim), end);
        assert_eq!(acquired.unwrap(), Acquired::Unsure(slot.clone(), Version(0)), "{reason}");
        proxy.heal();
        assert_eq!(take(&store, &claim).await.slot, slot);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repetitions_of_a_claim_that_overtake_each_other_take_one_worker() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    let (store, namespace, meta) = open(&etcd.url()).await;
    let mut stores = Vec::new();
    for _ in 0..8 {
        let url = format!("etcd://{}", proxy.address());
        stores.push(connect(&url, &namespace).await);
    }
    // All have looked before one of them writes.
    proxy.delay_requests(Duration::from_millis(200));
    let claim = any(meta);
    let mut repeated = JoinSet::new();
    for store in stores {
        let claim = claim.clone();
        repeated.spawn(async move { take(&store, &claim).await });
    }
    let tenures = repeated.join_all().await;
    assert!(tenures.iter().all(|tenure| tenure == &tenures[0]), "{tenures:?}");
    assert_eq!(held(&store).await, [tenures[0].slot.clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_cut_off_gets_an_answer_in_time_and_goes_on_later() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    let timeout = Duration::from_millis(1500);
    let (store, _, meta) = open(&format!("etcd://{}?timeout=1500ms", proxy.address())).await;
    let mut tenure = take(&store, &any(meta)).await;
    let cut: fn(&Proxy) = Proxy::cut;
    for hurt in [cut, Proxy::black_hole, Proxy::drop_replies] {
        hurt(&proxy);
        let start = boot_time();
        let error = store.extend(&tenure, &ask(Duration::from_secs(30))).await.unwrap_err();
        assert!(error.kind().is_retryable(), "{error}");
        let took = boot_time() - start;
        assert!(took < timeout + Duration::from_secs(1), "took {took:?}");
        proxy.heal();
        tenure = until("an extension", || async {
            match store.extend(&tenure, &ask(Duration::from_secs(30))).await {
                Ok(Extended::Held(tenure)) => Some(tenure),
                Ok(Extended::Lost(loss)) => panic!("lost: {loss:?}"),
                Err(_) => None,
            }
        })
        .await;
    }
    assert_eq!(held(&store).await, [tenure.slot]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_slept_too_long_is_told_who_took_over() {
    let etcd = Etcd::start().unwrap();
    let (sleeper, namespace, meta) = open(&etcd.url()).await;
    let other = connect(&etcd.url(), &namespace).await;
    let slot = Slot::named(Group::Elections, "sleepy").unwrap();
    let mut first = claim(Choice::This(slot.clone(), Version(0)), meta);
    first.ttl = Duration::from_secs(1);
    first.ask = first.now + 500;
    let old = take(&sleeper, &first).await;
    // Nothing renews a lease in the background, so doing nothing is as good as a pause.
    let new = until("the lease to run out", || async {
        let entry = other.list(Group::Elections).await.unwrap().remove(0);
        let claim = claim(Choice::This(slot.clone(), entry.version), meta);
        match other.acquire(&claim).await.unwrap() {
            Acquired::Held(tenure) => Some(tenure),
            Acquired::Taken => None,
            other => panic!("{other:?}"),
        }
    })
    .await;
    assert!(new.floor >= old.horizon && new.token > old.token, "{old:?} {new:?}");
    let mut late = ask(first.ttl);
    late.now = unix_ms();
    match sleeper.extend(&old, &late).await.unwrap() {
        Extended::Lost(Loss::Superseded { token, .. }) => assert_eq!(token, new.token),
        wrong => panic!("{wrong:?}"),
    }
    extend(&other, &new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_that_is_overtaken_by_a_takeover_changes_nothing() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    let (other, namespace, meta) = open(&etcd.url()).await;
    let slow = connect(&format!("etcd://{}", proxy.address()), &namespace).await;
    let slot = Slot::worker(1);
    let old = take(&slow, &claim(Choice::This(slot.clone(), Version(0)), meta)).await;
    // The extension looks, and is then held up twice before it writes.
    proxy.delay_requests(Duration::from_millis(500));
    let looked = proxy.bytes_down();
    let takeover = async {
        until("it to look", || async { (proxy.bytes_down() > looked).then_some(()) }).await;
        etcd.etcdctl(&["del", &format!("/frazil/{namespace}/own/{slot}")]).unwrap();
        let mut claim = claim(Choice::This(slot.clone(), old.version), meta);
        claim.now = old.horizon;
        take(&other, &claim).await
    };
    let late = ask(Duration::from_secs(30));
    let (extended, new) = tokio::join!(slow.extend(&old, &late), takeover);
    match extended.unwrap() {
        Extended::Lost(Loss::Superseded { token, .. }) => assert_eq!(token, new.token),
        wrong => panic!("{wrong:?}"),
    }
    let entry = other.list(Group::Workers).await.unwrap().remove(0);
    assert_eq!(entry.version, new.version, "it wrote over the new holder");
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_disturbs_neither_extensions_nor_watches() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    let mut tenure = take(&store, &any(meta)).await;
    announced(&mut changes).await;
    for _ in 0..3 {
        tenure = extend(&store, &tenure).await;
    }
    etcd.etcdctl(&["compaction", "--physical", &tenure.version.0.to_string()]).unwrap();
    etcd.etcdctl(&["defrag"]).unwrap();
    let past = (tenure.version.0 - 1).to_string();
    let gone = etcd.etcdctl(&["get", "/frazil", "--rev", &past]).unwrap_err();
    assert!(format!("{gone:#}").contains("compacted"), "{gone}");
    tenure = extend(&store, &tenure).await;
    store.release(&tenure, 0).await.unwrap();
    announced(&mut changes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_with_its_connection_and_can_be_renewed() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    let (store, namespace, meta) = open(&format!("etcd://{}", proxy.address())).await;
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    let other = connect(&etcd.url(), &namespace).await;
    proxy.cut();
    let end = tokio::time::timeout(PATIENCE, changes.next()).await.unwrap();
    assert_eq!(end, None, "it said something of a connection that is gone");
    proxy.heal();
    let mut changes =
        until("a new watch", || async { store.watch(&Watched::Group(Group::Workers)).await.ok() })
            .await;
    take(&other, &any(meta)).await;
    announced(&mut changes).await;
    drop(store);
    let end = tokio::time::timeout(PATIENCE, async { while changes.next().await.is_some() {} });
    end.await.expect("the watch ends with the store");
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_wake_nobody_and_lapses_do() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let mut claim = any(meta);
    claim.ttl = Duration::from_secs(2);
    let mut tenure = take(&store, &claim).await;
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    for _ in 0..5 {
        tenure = match store.extend(&tenure, &ask(claim.ttl)).await.unwrap() {
            Extended::Held(tenure) => tenure,
            Extended::Lost(loss) => panic!("lost: {loss:?}"),
        };
    }
    announced(&mut changes).await;
    assert_eq!(held(&store).await, [], "the first announcement is the lapse");
}

async fn announced(changes: &mut Changes) {
    tokio::time::timeout(PATIENCE, changes.next()).await.unwrap().expect("the watch goes on");
}
