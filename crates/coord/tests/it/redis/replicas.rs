//! Replicas that are lost: what waits for them, who names them, and how an operator gives them up.

use std::time::Duration;

use frazil_coord::internal::stores::redis::RedisStore;
use frazil_coord::internal::{Acquired, Choice, Claim, Extended, Leasing, Tenure};
use frazil_coord::{ForgottenReplica, Store, Timing, Version};
use frazil_rig::{AppendOnly, Redis, RedisCluster, Sentinels, wait_until};

use crate::redis::lab::{LIMIT, Place, any, eventually, take};

/// Where addresses that were given up are.
const FORGOTTEN: &str = "{frazil:lab}:forgotten_replicas";

/// A master under sentinels that know both of its replicas.
struct Site {
    master: Redis,
    replicas: [Redis; 2],
    sentinels: Sentinels,
}

impl Site {
    fn start() -> Self {
        let builder = || Redis::builder().persistent(AppendOnly::EverySecond);
        let master = builder().start().unwrap();
        let replicas = [(); 2].map(|()| builder().replica_of(&master).start().unwrap());
        let sentinels = Sentinels::start(&master).unwrap();
        let site = Self { master, replicas, sentinels };
        wait_until("the sentinels to know both", LIMIT, || {
            site.sentinels.nodes().iter().all(|sentinel| {
                let known = sentinel.cli(&["SENTINEL", "REPLICAS", "frazil"]).unwrap_or_default();
                site.replicas.iter().all(|replica| known.contains(&replica.address()))
            })
        })
        .unwrap();
        site.until_connected(2);
        site
    }

    fn place(&self) -> Place {
        Place::new(format!("{}?durability=wait-all&timeout=2s", self.sentinels.url()))
    }

    fn until_connected(&self, count: usize) {
        wait_until("the master to count its replicas", LIMIT, || {
            let info = self.master.cli(&["INFO", "replication"]).unwrap();
            info.matches("state=online").count() == count
        })
        .unwrap();
    }
}

/// A worker whose holder is gone without a release, its times over, once it has settled.
async fn abandoned(place: &Place, store: &RedisStore, version: Version, number: u32) -> Tenure {
    let mut claim = place.claim(any(number, number), version);
    (claim.ttl, claim.ask) = (Duration::from_millis(100), claim.now + 100);
    let tenure = take(store, &claim).await;
    eventually("it to settle", async || store.settle_all().await.unwrap_or(false).then_some(()))
        .await;
    tenure
}

/// Tries to take a worker over until the store says that this waits for a server.
async fn waits_for(store: &RedisStore, claim: &mut Claim, lost: &str) -> String {
    eventually("the takeover to wait for it", async || match store.acquire(claim).await {
        Ok(Acquired::Unsettled(slot, version, why)) => {
            claim.choice = Choice::This(slot, version);
            Some(format!("{why:#}")).filter(|why| why.contains(lost))
        }
        Ok(Acquired::Full(_)) => None,
        Err(error) if error.kind().is_retryable() => None,
        other => panic!("it may be lost, and was given: {other:?}"),
    })
    .await
}

/// Takes over what was waited for.
async fn taken_over(store: &RedisStore, claim: &Claim) -> Tenure {
    eventually("the takeover", async || match store.acquire(claim).await {
        Ok(Acquired::Held(tenure)) => Some(tenure),
        Ok(Acquired::Unsettled(..)) => None,
        Err(error) if error.kind().is_retryable() => None,
        other => panic!("{other:?}"),
    })
    .await
}

async fn named_by_doctor(store: &RedisStore, address: &str, fix: &str) -> bool {
    let findings = store.diagnose(&Timing::default()).await.unwrap();
    findings.iter().any(|found| found.what.contains(address) && found.fix.contains(fix))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_a_lost_replica_until_an_operator_gives_it_up() {
    let site = Site::start();
    let place = site.place();
    let store = place.open().await;
    let version = place.found(&store).await;
    let left = abandoned(&place, &store, version, 0).await;
    let held = take(&store, &place.claim(any(1, 1), version)).await;
    assert_eq!(store.missing_replicas().await.unwrap(), Vec::<String>::new());

    let [lost, kept] = site.replicas.each_ref().map(Redis::address);
    site.replicas[0].kill();
    site.until_connected(1);
    let command = format!("frazil store forget-replica {lost} --store '{store}' --namespace lab");
    let mut claim = place.claim(any(0, 0), version);
    let why = waits_for(&store, &mut claim, &lost).await;
    assert!(why.contains(&command) && !why.contains(&kept), "{why}");
    assert_eq!(store.missing_replicas().await.unwrap(), [lost.as_str()]);
    assert!(named_by_doctor(&store, &lost, &command).await);
    // Running nodes go on, and whoever finds a free worker starts.
    let extended = store.extend(&held, &place.ask()).await.unwrap();
    assert!(matches!(extended, Extended::Held(_)), "{extended:?}");
    take(&store, &place.claim(any(2, 2), version)).await;
    // The control: without the operator's word it waits on.
    waits_for(&store, &mut claim, &lost).await;

    // The word of one process is heeded by another, and by one that starts later.
    let operator = place.open().await;
    let known = vec![lost.clone(), kept.clone()];
    match operator.forget_replica("10.0.0.9:6379").await.unwrap() {
        ForgottenReplica::NotKnown { known: mut named } => {
            named.sort();
            let mut known = known;
            known.sort();
            assert_eq!(named, known);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(operator.forget_replica(&kept).await.unwrap(), ForgottenReplica::Connected);
    assert_eq!(operator.forget_replica(&lost).await.unwrap(), ForgottenReplica::Done);
    assert_eq!(operator.forget_replica(&lost).await.unwrap(), ForgottenReplica::Done);
    let taken = taken_over(&store, &claim).await;
    assert!(taken.floor >= left.horizon, "{taken:?} overlaps {left:?}");
    assert_eq!(place.open().await.missing_replicas().await.unwrap(), Vec::<String>::new());
    assert!(named_by_doctor(&store, &lost, "SENTINEL RESET").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_was_given_up_counts_again_once_it_is_connected() {
    let site = Site::start();
    let place = site.place();
    let store = place.open().await;
    let version = place.found(&store).await;
    abandoned(&place, &store, version, 0).await;
    let lost = site.replicas[0].address();
    site.replicas[0].kill();
    site.until_connected(1);
    assert_eq!(store.forget_replica(&lost).await.unwrap(), ForgottenReplica::Done);
    assert_eq!(site.master.cli(&["SMEMBERS", FORGOTTEN]).unwrap().trim(), lost);

    site.replicas[0].restart().unwrap();
    let port = site.master.port().to_string();
    site.replicas[0].cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    site.until_connected(2);
    assert_eq!(store.missing_replicas().await.unwrap(), Vec::<String>::new());
    assert_eq!(site.master.cli(&["SMEMBERS", FORGOTTEN]).unwrap().trim(), "");

    site.replicas[0].kill();
    site.until_connected(1);
    assert_eq!(store.missing_replicas().await.unwrap(), [lost.as_str()]);
    let mut claim = place.claim(any(0, 0), version);
    waits_for(&store, &mut claim, &lost).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_replica_of_a_cluster_is_named_and_given_up_too() {
    let cluster = RedisCluster::with_replicas(3, 1).unwrap();
    for node in cluster.nodes() {
        node.cli(&["CONFIG", "SET", "appendonly", "yes"]).unwrap();
        let has_log =
            || node.info("aof_rewrite_in_progress").is_ok_and(|under_way| under_way == "0");
        wait_until("the log", LIMIT, has_log).unwrap();
    }
    let place = Place::new(format!("{}?timeout=2s", cluster.url()));
    let store = place.open().await;
    let version = place.found(&store).await;
    abandoned(&place, &store, version, 0).await;
    let owner = cluster.master_of("{frazil:lab}:meta").unwrap();
    let replica = cluster.node(owner + 3);
    replica.kill();
    let is_missed = || cluster.node(owner).info("connected_slaves").unwrap() == "0";
    wait_until("the master to miss it", LIMIT, is_missed).unwrap();
    let mut claim = place.claim(any(0, 0), version);
    waits_for(&store, &mut claim, &replica.address()).await;
    assert_eq!(store.missing_replicas().await.unwrap(), [replica.address()]);
    let forgotten = store.forget_replica(&replica.address()).await.unwrap();
    assert_eq!(forgotten, ForgottenReplica::Done);
    taken_over(&store, &claim).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_log_nothing_waits_for_a_replica() {
    let master = Redis::start().unwrap();
    let replica = Redis::builder().replica_of(&master).start().unwrap();
    let sentinels = Sentinels::start(&master).unwrap();
    let place = Place::new(format!("{}?timeout=2s", sentinels.url()));
    let store = place.open().await;
    replica.kill();
    let is_missed = || master.info("connected_slaves").unwrap() == "0";
    wait_until("the master to miss it", LIMIT, is_missed).unwrap();
    assert_eq!(store.missing_replicas().await.unwrap(), Vec::<String>::new());
    let forgotten = store.forget_replica(&replica.address()).await.unwrap();
    assert_eq!(forgotten, ForgottenReplica::NoneCounts);
}

#[tokio::test]
async fn a_server_without_sentinels_waits_for_no_replica() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let forgotten = store.forget_replica("127.0.0.1:1").await.unwrap();
    assert_eq!(forgotten, ForgottenReplica::NoneCounts);
    assert_eq!(store.missing_replicas().await.unwrap(), Vec::<String>::new());
}
