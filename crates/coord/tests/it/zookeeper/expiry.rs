//! Sessions that end, connections that do not, and answers that are lost.

use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::rules::CLOCK_BOUND_MS;
use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released};
use frazil_coord::{ErrorKind, Group, Loss, Presence, Slot, Store, Version};
use frazil_rig::Proxy;

use crate::zookeeper::place::{Place, ask, begin, claim, server, take};

/// The shortest session that the servers of the tests grant.
const SHORT: &str = "session=1s";
const WAIT: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn whoever_returns_after_expiry_finds_itself_superseded_and_times_are_disjoint() {
    let place = Place::new(&server().address()).await;
    let proxy = Proxy::start(server().address()).unwrap();
    let old = place.open(&proxy.address(), SHORT).await;
    let new = place.open(&server().address(), "session=5s").await;
    let meta = begin(&old).await;
    let slot = Slot::worker(7);
    let mut brief = claim(meta, Choice::This(slot.clone(), Version(0)));
    // Near enough to be reached by a clock that the store still lets in, as the successor's is.
    brief.ask = brief.now + CLOCK_BOUND_MS - 1000;
    let first = take(&old, &brief).await;
    proxy.black_hole();
    place.wait_until_free(&slot).await;

    let early = claim(meta, Choice::This(slot.clone(), first.version));
    assert!(matches!(new.acquire(&early).await, Ok(Acquired::Full(_))), "before the old horizon");
    let mut late = claim(meta, Choice::This(slot.clone(), first.version));
    late.now = first.horizon;
    late.ask = first.horizon + 60_000;
    let second = take(&new, &late).await;
    assert!(second.floor >= first.horizon && second.token > first.token);

    proxy.heal();
    let extended = old.extend(&first, &ask(first.horizon + 120_000)).await.unwrap();
    let loss = Loss::Superseded { token: second.token, holder: "a test".into() };
    assert_eq!(extended, Extended::Lost(loss));
    assert_eq!(old.release(&first, 0).await.unwrap(), Released::NotHeld);
    let owner = place.owner(&slot).await;
    assert!(owner.is_some(), "the new holder was thrown out");
    // A store that took presence for ownership would now find a presence, and hold on.
    assert!(matches!(new.extend(&second, &ask(0)).await.unwrap(), Extended::Held(_)));
    assert_eq!(place.owner(&slot).await, owner);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_is_replaced_and_the_tenure_goes_on() {
    let place = Place::new(&server().address()).await;
    let proxy = Proxy::start(server().address()).unwrap();
    let store = place.open(&proxy.address(), SHORT).await;
    let meta = begin(&store).await;
    let tenure = take(&store, &claim(meta, any())).await;
    let before = place.owner(&tenure.slot).await.unwrap();
    proxy.cut();
    place.wait_until_free(&tenure.slot).await;
    proxy.heal();
    let extended = store.extend(&tenure, &ask(tenure.horizon + 1000)).await.unwrap();
    let Extended::Held(again) = extended else { panic!("{extended:?}") };
    assert_eq!((again.token, again.floor), (tenure.token, tenure.floor));
    let after = place.owner(&tenure.slot).await.unwrap();
    assert_ne!(before, after, "it was not the session that ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_not_a_lost_session() {
    let place = Place::new(&server().address()).await;
    let proxy = Proxy::start(server().address()).unwrap();
    let store = place.open(&proxy.address(), "session=30s").await;
    let meta = begin(&store).await;
    let mut tenure = take(&store, &claim(meta, any())).await;
    let before = place.owner(&tenure.slot).await;
    for round in 1..=3 {
        proxy.disconnect();
        let extended = store.extend(&tenure, &ask(tenure.horizon + 1000)).await.unwrap();
        let Extended::Held(again) = extended else { panic!("{extended:?}") };
        tenure = again;
        assert_eq!(place.owner(&tenure.slot).await, before, "in round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_taken_up_as_soon_as_the_store_is_back() {
    let place = Place::new(&server().address()).await;
    let proxy = Proxy::start(server().address()).unwrap();
    let store = place.open(&proxy.address(), "session=30s").await;
    let meta = begin(&store).await;
    let tenure = take(&store, &claim(meta, any())).await;
    let before = place.owner(&tenure.slot).await;
    let connections = proxy.connections();
    proxy.cut();
    // By then the client waits for more than a second before it tries again.
    proxy.wait_for_connections(connections + 4, Duration::from_secs(60)).unwrap();
    // The attempt that was just seen is turned away before the proxy lets anybody through.
    let mut moment = tokio::time::interval(Duration::from_millis(200));
    moment.tick().await;
    moment.tick().await;
    proxy.heal();
    let soon = Duration::from_secs(1);
    let extended = tokio::time::timeout(soon, store.extend(&tenure, &ask(0))).await;
    assert!(matches!(extended.expect("at once"), Ok(Extended::Held(_))));
    assert_eq!(place.owner(&tenure.slot).await, before, "it is another session");
    // For longer than the client that was given up would have waited: it neither comes back, so that
    // the session would move to and fro, nor ends the session.
    for _ in 0..15 {
        moment.tick().await;
        assert!(matches!(store.extend(&tenure, &ask(0)).await, Ok(Extended::Held(_))));
    }
    assert_eq!(proxy.open_connections(), 1);
    assert_eq!(place.owner(&tenure.slot).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_takes_its_own_old_presence_over_at_once() {
    let place = Place::new(&server().address()).await;
    let address = server().address();
    let (old, new) = (place.open(&address, "").await, place.open(&address, "").await);
    let meta = begin(&old).await;
    let tenure = take(&old, &claim(meta, any())).await;
    let before = place.owner(&tenure.slot).await.unwrap();
    // The same holder, in a session that is not the one that acquired.
    let extended = new.extend(&tenure, &ask(tenure.horizon + 1000)).await.unwrap();
    assert!(matches!(extended, Extended::Held(_)), "{extended:?}");
    let after = place.owner(&tenure.slot).await.unwrap();
    assert_ne!(before, after);
    drop(old);
    assert_eq!(place.owner(&tenure.slot).await, Some(after));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_unsure_and_repeating_gives_the_same_tenure() {
    let place = Place::new(&server().address()).await;
    let proxy = Proxy::start(server().address()).unwrap();
    let store = Arc::new(place.open(&proxy.address(), "session=30s&timeout=2s").await);
    let meta = begin(&*store).await;
    let claim = claim(meta, Choice::This(Slot::worker(3), Version(0)));

    // Requests are slow, so that between the answer to the reading and the writing there is time
    // to start throwing answers away.
    proxy.delay_requests(Duration::from_millis(300));
    let before = proxy.bytes_down();
    let acquiring = tokio::spawn({
        let (store, claim) = (store.clone(), claim.clone());
        async move { store.acquire(&claim).await }
    });
    // More than the answer to the sync that goes before the reading.
    proxy.wait_for_bytes_down(before + 60, WAIT).unwrap();
    proxy.drop_replies();
    proxy.wait_for_bytes_dropped(0, WAIT).unwrap();
    let acquired = acquiring.await.unwrap().unwrap();
    assert_eq!(acquired, Acquired::Unsure(Slot::worker(3), Version(0)));
    let written = place.control.get_data(&place.path("w/3")).await.unwrap();
    let written = String::from_utf8(written.0).unwrap();
    assert!(written.contains(&claim.nonce.to_string()), "it was not carried out: {written}");

    proxy.heal();
    let tenure = take(&*store, &claim).await;
    assert!(written.contains(&format!("\"token\":{}", tenure.token)), "{written}, {tenure:?}");
    let listed = store.list(Group::Workers).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_ne!(listed[0].presence, Presence::Free);
    assert!(matches!(store.extend(&tenure, &ask(0)).await.unwrap(), Extended::Held(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_answers_every_act_ends_within_the_time_out() {
    let place = Place::new(&server().address()).await;
    let proxy = Proxy::start(server().address()).unwrap();
    let store = place.open(&proxy.address(), "session=30s&timeout=1s").await;
    let meta = begin(&store).await;
    let tenure = take(&store, &claim(meta, any())).await;
    proxy.black_hole();
    let limit = Duration::from_secs(2);
    let act = async {
        let read = store.meta().await.unwrap_err();
        assert_eq!(read.kind(), ErrorKind::Unavailable, "{read}");
    };
    tokio::time::timeout(limit, act).await.expect("meta ends");
    let act = async {
        let extended = store.extend(&tenure, &ask(0)).await.unwrap_err();
        assert!(extended.kind().is_retryable(), "{extended}");
    };
    tokio::time::timeout(limit, act).await.expect("extend ends");
    proxy.heal();
    assert!(matches!(store.extend(&tenure, &ask(0)).await, Ok(Extended::Held(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_is_not_promised_for_longer_than_a_session() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "session=100s").await;
    let meta = begin(&store).await;
    // The servers grant no more than 60 s.
    let warnings = store.guarantees().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("sessions last 60s")), "{warnings:?}");
    let mut long = claim(meta, any());
    long.ttl = Duration::from_secs(61);
    let refused = store.acquire(&long).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidConfig, "{refused}");
    long.ttl = Duration::from_secs(60);
    let tenure = take(&store, &long).await;
    assert_eq!(tenure.expires, tenure.store_now.map(|now| now + 60_000));
}

/// The client's task may end before ours do.
#[test]
fn a_runtime_ends_while_requests_are_under_way() {
    for _ in 0..20 {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
        let store = runtime.block_on(async {
            let place = Place::new(&server().address()).await;
            Arc::new(place.open(&server().address(), "").await)
        });
        for _ in 0..4 {
            let store = store.clone();
            runtime.spawn(async move {
                loop {
                    let _ = store.list(Group::Elections).await;
                }
            });
        }
        drop(store);
        let (tell, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(runtime);
            let _ = tell.send(());
        });
        ended.recv_timeout(WAIT).expect("the runtime does not end");
    }
}

fn any() -> Choice {
    Choice::Any { first: 0, last: 63, favourite: None }
}
