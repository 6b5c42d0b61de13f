//! A server from its start to its end, with stores that fail in between.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use frazil::Layout;
use frazil::coord::Copied;
use frazil::coord::internal::rules;
use frazil::coord::internal::time::unix_ms;
use frazil::coord::internal::{Leasing, Released};
use frazil::coord::{FirstUse, Refusal};
use frazil::coord::{Found, Group, Namespace, Presence, Store, Timing};
use frazil_rig::{AppendOnly, Redis};
use frazil_server::{App, Config, LaneCount, NodeState, RunError};
use frazil_wire::IdsReply;

use crate::site::{Site, config, request, send};

const SHORT: Timing = Timing::DEFAULT
    .with_ttl(Duration::from_secs(1))
    .with_heartbeat(Duration::from_millis(300))
    .with_outage_budget(Duration::from_secs(4));

/// A node on a store that forgets nothing, with short leases.
fn on_redis(redis: &Redis) -> impl FnOnce(&mut Config) {
    let store = redis.url();
    move |config| {
        let node = frazil::Node::builder().store(&store);
        config.node = node.timing(SHORT).first_use(FirstUse::AtOnce);
    }
}

fn lasting_redis() -> Redis {
    Redis::builder().persistent(AppendOnly::Always).start().unwrap()
}

/// One ID a second and worker.
fn slow(config: &mut Config) {
    let layout: Layout =
        "time:40 worker:10 sequence:1 @2024-01-01T00:00:00Z tick:2s".parse().unwrap();
    config.node = config.node.clone().layout(layout).options(frazil::id::Options::default());
}

#[tokio::test]
async fn it_answers_probes_before_its_store_is_there_and_issues_then() {
    let redis = lasting_redis();
    redis.kill();
    let mut site = Site::begin(on_redis(&redis)).await;
    assert_eq!(site.get("/livez").await.status, 200);
    let ready = site.get("/readyz?verbose").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().ends_with("starting\n"), "{}", ready.text());
    let refused = site.post("/ids").await;
    assert_eq!((refused.status, refused.reason().as_str()), (503, "NO_WORKER"));
    assert_eq!(site.get("/v1/cluster").await.reason(), "STORE_UNAVAILABLE");
    redis.restart().unwrap();
    site.wait_for(NodeState::Ready).await;
    assert_eq!(site.post("/ids").await.status, 200);
    site.stop().await.unwrap();
}

/// What the horizon promised is kept; then nothing is issued until the store is back.
#[tokio::test]
async fn without_its_store_a_node_issues_up_to_the_horizon_and_goes_on_when_it_is_back() {
    let redis = lasting_redis();
    let mut site = Site::start_with(on_redis(&redis)).await;
    redis.kill();
    site.wait_for(NodeState::Degraded).await;
    let verbose = site.get("/readyz?verbose").await;
    assert_eq!(verbose.status, 200);
    assert!(verbose.text().contains("[-] store: does not answer"), "{}", verbose.text());
    let mut left = Vec::new();
    let refused = loop {
        let horizon = horizon(&site).await;
        left.push(site.metric("frazil_issuable_seconds").await);
        let reply = site.post("/ids?count=10").await;
        if reply.status == 200 {
            continue;
        }
        assert!(unix_ms() >= horizon, "refused {} ms early", horizon - unix_ms());
        break reply;
    };
    assert_eq!((refused.status, refused.reason().as_str()), (503, "HORIZON_REACHED"));
    assert!(left.len() > 10 && left.is_sorted_by(|one, other| one >= other), "{left:?}");
    site.wait_for(NodeState::Refusing).await;
    assert_eq!(site.get("/readyz").await.status, 503);
    assert_eq!(site.get("/livez").await.status, 200);
    redis.restart().unwrap();
    site.wait_for(NodeState::Ready).await;
    assert_eq!(site.post("/ids").await.status, 200);
    site.stop().await.unwrap();
}

async fn horizon(site: &Site) -> u64 {
    let info = site.get("/v1/info").await.json();
    let horizon = info["lanes"][0]["horizon"].as_str().unwrap().to_owned();
    let horizon: frazil_id::rfc3339::Instant = horizon.parse().unwrap();
    horizon.unix_ms().cast_unsigned()
}

/// A server that may have lost its last second lets nobody new in for a while: then no worker is
/// free, whatever the records say.
#[tokio::test]
async fn the_cluster_shows_what_a_store_keeps_back_after_a_restart() {
    let redis = Redis::builder().persistent(AppendOnly::EverySecond).start().unwrap();
    let site = Site::start_with(|config| {
        on_redis(&redis)(config);
        // What is kept back is kept back for a window.
        let timing = SHORT.with_outage_budget(Duration::from_mins(10));
        config.node = config.node.clone().timing(timing);
    })
    .await;
    let workers = async || {
        let cluster = site.get("/v1/cluster").await.json();
        (cluster["workers"]["free"].as_u64(), cluster["workers"]["quarantined"].as_u64())
    };
    assert_eq!(workers().await, (Some(1023), Some(0)));
    redis.kill();
    redis.restart().unwrap();
    let kept_back = async {
        // Seen at most once a second, and only when the store is connected to again.
        while workers().await.0 != Some(0) {
            tokio::task::yield_now().await;
        }
        assert!(workers().await.1 >= Some(1023));
    };
    let shown = tokio::time::timeout(Duration::from_secs(30), kept_back).await;
    assert!(shown.is_ok(), "{:?}", workers().await);
    site.stop().await.unwrap();
}

/// Other workers are found in no time: only the lease itself knows how often that was necessary. A
/// rotation in between puts another lease in its place.
#[tokio::test]
async fn every_lost_lease_is_counted_however_soon_it_is_replaced() {
    const LOSSES: u32 = 12;
    let redis = lasting_redis();
    let site = Site::start_with(|config| {
        on_redis(&redis)(config);
        config.admin = config.http;
    })
    .await;
    let url = redis.url().parse().unwrap();
    let store = frazil::coord::open(&url, &Namespace::default(), Copied::Refuse).await.unwrap();
    let lost = async || site.metric("frazil_lease_lost_total{reason=\"released\"}").await;
    assert!(lost().await.abs() < 0.5);
    for losses in 1..=LOSSES {
        if losses == LOSSES / 2 {
            rotate(&site).await;
        }
        release_from_outside(store.as_ref()).await;
        let counted = async {
            while lost().await < f64::from(losses) {
                tokio::task::yield_now().await;
            }
        };
        let counted = tokio::time::timeout(Duration::from_secs(30), counted).await;
        assert!(counted.is_ok(), "{} of {losses}", lost().await);
    }
    assert!((lost().await - f64::from(LOSSES)).abs() < 0.5, "none is counted twice");
    site.stop().await.unwrap();
}

/// Moves to another worker, as soon as there is one to move from.
async fn rotate(site: &Site) {
    let request = "POST /v1/node:rotate HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let rotated = async {
        while send(site.addrs.admin.unwrap(), request.as_bytes()).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), rotated).await.expect("it is rotated");
}

/// Releases the one worker that is held, behind its holder's back.
async fn release_from_outside(store: &dyn Store) {
    loop {
        let entries = store.list(Group::Workers).await.unwrap();
        let held = entries.iter().find(|entry| entry.presence != Presence::Free);
        let Some((entry, Found::Known(record))) = held.map(|entry| (entry, &entry.found)) else {
            continue;
        };
        let nonce = record.nonce.expect("somebody holds it");
        let meta = store.meta().await.unwrap().expect("it was created").value;
        let (slot, record) = (entry.slot.clone(), record.clone());
        let tenure = rules::tenure(slot, nonce, entry.version, record, meta.incarnation);
        if store.release(&tenure, unix_ms()).await.unwrap() == Released::Done {
            return;
        }
    }
}

#[tokio::test]
async fn a_node_that_refuses_for_too_long_ends_itself() {
    let redis = lasting_redis();
    let site = Site::start_with(|config| {
        on_redis(&redis)(config);
        config.refusal_limit = Duration::from_millis(300);
    })
    .await;
    redis.kill();
    let ended = site.ended().await;
    assert!(matches!(ended, Err(RunError::Refused { .. })), "{ended:?}");
}

#[tokio::test]
async fn what_only_an_operator_can_mend_ends_the_start() {
    let first = Site::start().await;
    let store = format!("file:{}", first.directory().display());
    let other = Site::begin(|config| {
        let node = frazil::Node::builder().store(&store);
        config.node = node.layout("twitter".parse().unwrap());
    })
    .await;
    let ended = other.ended().await;
    let refusal = ended.as_ref().err().and_then(RunError::refusal);
    assert!(matches!(refusal, Some(Refusal::OtherLayout { .. })), "{ended:?}");
    assert_eq!(first.post("/ids").await.status, 200);
    first.stop().await.unwrap();
}

#[tokio::test]
async fn several_servers_in_one_process_share_nothing_but_the_store() {
    let first = Site::start().await;
    let store = format!("file:{}", first.directory().display());
    let second = Site::start_with(|config| {
        config.node = frazil::Node::builder().store(&store);
        config.name = "second".to_owned();
    })
    .await;
    let mut workers = BTreeSet::new();
    for site in [&first, &second] {
        let reply: IdsReply = serde_json::from_slice(&site.post("/ids").await.body).unwrap();
        workers.insert(reply.metadata.worker);
        assert!((site.issued("http").await - 1.0).abs() < f64::EPSILON);
    }
    assert_eq!(workers.len(), 2);
    first.stop().await.unwrap();
    assert_eq!(second.post("/ids").await.status, 200);
    second.stop().await.unwrap();
}

/// The worker can be taken at once after a stop: it was released.
#[tokio::test]
async fn a_stop_finishes_what_is_in_flight_and_releases_the_worker() {
    let mut site = Site::start_with(|config| {
        slow(config);
        config.limits.max_wait = Duration::from_secs(20);
    })
    .await;
    let address = site.http();
    // Two IDs a tick: the others wait.
    let waiting: Vec<_> =
        (0..3).map(|_| tokio::spawn(request(address, "POST", "/ids?count=2", &[], b""))).collect();
    let exhausted = async {
        while site.metric("frazil_sequence_exhausted_total").await < 1.0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), exhausted).await.unwrap();
    site.ask_to_stop();
    let mut statuses = Vec::new();
    for reply in waiting {
        statuses.push(reply.await.unwrap().status);
    }
    assert_eq!(statuses, [200; 3]);
    let store = format!("file:{}", site.directory().display());
    let store = frazil::coord::open(
        &store.parse().unwrap(),
        &frazil::coord::Namespace::default(),
        frazil::coord::Copied::Refuse,
    )
    .await
    .unwrap();
    site.wait_for(NodeState::Stopped).await;
    let entries = store.list(frazil::coord::Group::Workers).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].presence, frazil::coord::Presence::Free);
    site.ended().await.unwrap();
}

#[tokio::test]
async fn more_than_can_be_issued_is_shed_and_probes_still_answer() {
    let site = Site::start_with(|config| {
        slow(config);
        config.limits.max_waiting = 4;
    })
    .await;
    let address = site.http();
    let asked: Vec<_> =
        (0..50).map(|_| tokio::spawn(request(address, "POST", "/ids", &[], b""))).collect();
    assert_eq!(site.get("/livez").await.status, 200);
    assert_eq!(site.get("/readyz").await.status, 200);
    let mut reasons = BTreeSet::new();
    for reply in asked {
        let reply = reply.await.unwrap();
        if reply.status != 200 {
            reasons.insert((reply.status, reply.reason()));
        }
    }
    assert!(reasons.contains(&(503, "OVERLOADED".to_owned())), "{reasons:?}");
    assert!(reasons.iter().all(|(status, _)| matches!(status, 503 | 504)), "{reasons:?}");
    site.stop().await.unwrap();
}

/// 16,000 IDs a second and lane: the clients want more, and no request of theirs fails.
#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_added_while_the_sequence_stays_used_up() {
    let layout: Layout =
        "time:41 worker:10 sequence:4 @2024-01-01T00:00:00Z tick:1ms".parse().unwrap();
    let site = Site::start_with(|config| {
        config.lanes = LaneCount::Auto;
        config.node = config.node.clone().layout(layout);
    })
    .await;
    let address = site.http();
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let is_over = is_over.clone();
            tokio::spawn(async move {
                let mut ids = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let reply = request(address, "POST", "/ids?count=500", &[], b"").await;
                    // On a busy machine some have to wait for too long.
                    if reply.status == 504 {
                        continue;
                    }
                    let reply: IdsReply = serde_json::from_slice(&reply.body)
                        .unwrap_or_else(|_| panic!("failed: {}", reply.text()));
                    ids.extend(reply.ids);
                }
                ids
            })
        })
        .collect();
    let more = async {
        while site.metric("frazil_lanes").await < 3.0 {
            tokio::task::yield_now().await;
        }
    };
    let grew = tokio::time::timeout(Duration::from_secs(60), more).await;
    is_over.store(true, Ordering::Relaxed);
    let (mut count, mut all) = (0, BTreeSet::new());
    for client in clients {
        let ids = client.await.unwrap();
        count += ids.len();
        all.extend(ids);
    }
    grew.expect("lanes are added");
    assert_eq!(all.len(), count, "an ID was issued twice");
    let workers: BTreeSet<_> = all.iter().map(|id| id.parts(&layout).unwrap().worker).collect();
    assert!(workers.len() >= 2, "{workers:?}");
    site.stop().await.unwrap();
}

/// All clients of a node that failed come to the others at once.
#[tokio::test]
async fn a_thousand_clients_that_come_at_once_need_not_try_again() {
    let app = App::bind(config("memory:")).await.unwrap();
    let address = app.addrs().http.unwrap();
    // Nobody accepts them yet: the kernel keeps them, or drops those for whom it has no room.
    let come = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(900));
    let crowd = (0..1000).map(|_| come()).collect::<Result<Vec<_>, _>>();
    assert_eq!(crowd.unwrap().len(), 1000);
}
