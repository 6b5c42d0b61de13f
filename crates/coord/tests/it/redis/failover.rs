//! Fail-overs that lose acknowledged writes.

use std::time::Duration;

use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released, Tenure};
use frazil_coord::{Loss, Slot, Store, Version};
use frazil_rig::{AppendOnly, Proxy, Redis, RedisCluster, Sentinels, wait_until};

use crate::redis::lab::{LIMIT, Place, any, eventually, extended, replica_of, take};
use frazil_coord::internal::stores::redis::RedisStore;

/// Short, so that the guard passes within the test.
const WINDOW_MS: u64 = 1500;

/// Keeps a replica from getting anything more: it is thrown out and cannot log in again.
fn cut_off(master: &Redis, replica: &Redis) {
    let settled = || {
        replica.info("master_repl_offset").unwrap() == master.info("master_repl_offset").unwrap()
    };
    wait_until("the replica to have all", LIMIT, settled).unwrap();
    master.cli(&["CONFIG", "SET", "requirepass", "other"]).unwrap();
    master.cli(&["-a", "other", "CLIENT", "KILL", "TYPE", "replica"]).unwrap();
    let is_down = || replica.info("master_link_status").unwrap() == "down";
    wait_until("the replica to be cut off", LIMIT, is_down).unwrap();
}

/// The first tenure of a worker that a newcomer gets; until then it must be told to wait.
async fn newcomer(place: &Place, store: &RedisStore, version: Version, number: u32) -> Tenure {
    eventually("the guard to pass", async || {
        let claim = place.claim(any(number, number), version);
        match store.acquire(&claim).await.unwrap() {
            Acquired::Held(tenure) => Some(tenure),
            Acquired::Full(census) => {
                assert!(census.next_floor.is_some() || census.held > 0, "{census:?}");
                None
            }
            other => panic!("{other:?}"),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_acquisition_was_lost_is_not_given_out_with_overlapping_times() {
    let master = Redis::start().unwrap();
    let replica = replica_of(&master);
    let sentinels = Sentinels::start(&master).unwrap();
    let place =
        Place::new(format!("{}?isolation=1s&timeout=2s", sentinels.url())).window(WINDOW_MS);
    let first = place.open().await;
    let warnings = first.guarantees().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("min-replicas")), "{warnings:?}");
    let version = place.found(&first).await;
    cut_off(&master, &replica);
    let tenure = take(&first, &place.claim(any(0, 0), version)).await;
    let Extended::Held(tenure) = first.extend(&tenure, &place.ask()).await.unwrap() else {
        panic!("not held")
    };
    // The control: a lock without a guard, which two get.
    let naive = |redis: &Redis, arguments: &[&str]| redis.cli(arguments).unwrap().trim().to_owned();
    let locked = naive(&master, &["-a", "other", "--no-auth-warning", "SET", "naive", "1", "NX"]);
    assert_eq!(locked, "OK");
    master.kill();
    assert_eq!(sentinels.wait_for_failover(master.port()).unwrap(), replica.port());
    assert_eq!(naive(&replica, &["SET", "naive", "2", "NX"]), "OK", "nothing was lost");
    let second = place.open().await;
    let taken = newcomer(&place, &second, version, 0).await;
    assert!(taken.floor >= tenure.horizon, "{taken:?} overlaps {tenure:?}");
    // The same object finds the new master, and hears the truth there.
    let outcome = extended(&first, &tenure, &place.ask()).await;
    assert!(matches!(outcome, Extended::Lost(_)), "{outcome:?}");
    assert_eq!(first.release(&tenure, 0).await, Ok(Released::NotHeld));
    assert!(matches!(second.extend(&taken, &place.ask()).await, Ok(Extended::Held(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_logs_a_holder_that_lapsed_goes_on_at_the_promoted_server() {
    let master = Redis::builder().persistent(AppendOnly::EverySecond).start().unwrap();
    let replica =
        Redis::builder().persistent(AppendOnly::EverySecond).replica_of(&master).start().unwrap();
    let sentinels = Sentinels::start(&master).unwrap();
    let place = Place::new(format!("{}?isolation=1s&timeout=2s", sentinels.url()));
    let store = place.open().await;
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    (claim.ttl, claim.ask) = (Duration::from_millis(100), claim.now + 100);
    let first = take(&store, &claim).await;
    // A takeover is used once the log and the replica have it.
    let tenure = newcomer(&place, &store, version, 0).await;
    assert!(tenure.floor >= first.horizon && tenure.usable == tenure.horizon, "{tenure:?}");
    let copy = replica.cli(&["HGET", "{frazil:lab}:w", "0"]).unwrap();
    assert!(copy.contains(&tenure.nonce.to_string()), "the replica does not have it: {copy}");
    let mut ask = place.ask();
    ask.ttl = Duration::from_millis(1);
    let Extended::Held(tenure) = store.extend(&tenure, &ask).await.unwrap() else {
        panic!("not held")
    };
    master.kill();
    assert_eq!(sentinels.wait_for_failover(master.port()).unwrap(), replica.port());
    let outcome = extended(&store, &tenure, &place.ask()).await;
    let Extended::Held(held) = outcome else { panic!("{outcome:?}") };
    assert_ne!(held.settling.history, tenure.settling.history);
    let acquired = store.acquire(&place.claim(any(1, 1), version)).await.unwrap();
    assert!(matches!(acquired, Acquired::Full(_)), "a newcomer was let in: {acquired:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_a_replica_that_could_be_promoted_and_nothing_else_does() {
    let master = Redis::builder().persistent(AppendOnly::EverySecond).start().unwrap();
    let replica = replica_of(&master);
    let sentinels = Sentinels::start(&master).unwrap();
    let place = Place::new(format!("{}?isolation=1s&timeout=2s", sentinels.url()));
    let store = place.open().await;
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    (claim.ttl, claim.ask) = (Duration::from_millis(100), claim.now + 100);
    take(&store, &claim).await;
    let held = take(&store, &place.claim(any(1, 1), version)).await;
    replica.pause().unwrap();
    let free = take(&store, &place.claim(any(2, 2), version)).await;
    assert_eq!(free.usable, free.horizon);
    let outcome = store.extend(&held, &place.ask()).await.unwrap();
    assert!(matches!(outcome, Extended::Held(_)), "{outcome:?}");
    let late = place.claim(any(0, 0), version);
    let unsure =
        eventually("presence to lapse", async || match store.acquire(&late).await.unwrap() {
            Acquired::Unsettled(slot, read, _) => Some((slot, read)),
            Acquired::Full(_) => None,
            other => panic!("the replica may be promoted without it: {other:?}"),
        });
    let (slot, read) = unsure.await;
    replica.resume().unwrap();
    let again = frazil_coord::internal::Claim { choice: Choice::This(slot, read), ..late };
    let taken =
        eventually("the replica to have it", async || match store.acquire(&again).await.unwrap() {
            Acquired::Held(tenure) => Some(tenure),
            _ => None,
        });
    assert_eq!(taken.await.nonce, again.nonce);
}

/// A pair behind one address, that fails over when told.
struct Pair {
    master: Redis,
    replica: Redis,
    proxy: Proxy,
}

impl Pair {
    fn start() -> Self {
        let master = Redis::start().unwrap();
        let replica = replica_of(&master);
        let proxy = Proxy::start(master.address()).unwrap();
        Self { master, replica, proxy }
    }

    fn place(&self) -> Place {
        Place::new(format!("redis://{}?isolation=1s&timeout=2s", self.proxy.address()))
            .window(WINDOW_MS)
    }

    /// The replica is promoted; the master may live on.
    fn promote(&self) {
        self.replica.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
        self.proxy.retarget(self.replica.address()).unwrap();
        self.proxy.disconnect();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_present_holder_goes_on_and_gets_back_the_horizon_that_was_lost() {
    let pair = Pair::start();
    let place = pair.place().window(60_000);
    let store = place.open().await;
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    claim.ask = claim.now + 10;
    let tenure = take(&store, &claim).await;
    cut_off(&pair.master, &pair.replica);
    let Extended::Held(tenure) = extended(&store, &tenure, &place.ask()).await else {
        panic!("not held")
    };
    let copy = pair.replica.cli(&["HGET", "{frazil:lab}:w", "0"]).unwrap();
    assert!(!copy.contains(&tenure.horizon.to_string()), "nothing was lost");
    pair.promote();
    let mut ask = place.ask();
    ask.horizon = 0;
    let Extended::Held(extended) = store.extend(&tenure, &ask).await.unwrap() else {
        panic!("a present holder was thrown out")
    };
    assert!(extended.horizon >= tenure.horizon, "{extended:?} after {tenure:?}");
    assert_ne!(extended.settling.history, tenure.settling.history);
    assert!(matches!(store.extend(&extended, &place.ask()).await, Ok(Extended::Held(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_whose_successor_was_lost_does_not_come_back() {
    let pair = Pair::start();
    let place = pair.place();
    let (store, direct) = (place.open().await, Place::new(pair.master.url()).window(WINDOW_MS));
    let version = place.found(&store).await;
    let mut claim = place.claim(any(0, 0), version);
    claim.ttl = Duration::from_millis(200);
    claim.ask = claim.now + 10;
    let early = take(&store, &claim).await;
    let other = direct.open().await;
    cut_off(&pair.master, &pair.replica);
    let successor = newcomer(&place, &other, version, 0).await;
    let copy = pair.replica.cli(&["HGET", "{frazil:lab}:w", "0"]).unwrap();
    assert!(copy.contains(&early.nonce.to_string()), "the replica knows of the successor: {copy}");
    pair.promote();
    // The control: by token and nonce alone it would be the holder.
    let outcome = extended(&store, &early, &place.ask()).await;
    assert_eq!(outcome, Extended::Lost(Loss::Lapsed));
    // Nor does a repetition of its claim, whose answer it might not have had, bring it back.
    let again = frazil_coord::internal::Claim {
        choice: Choice::This(Slot::worker(0), Version(0)),
        ..claim
    };
    assert_eq!(store.acquire(&again).await.unwrap(), Acquired::Taken);
    // Its release frees the slot, and brings down no more than its own times.
    assert_eq!(store.release(&early, 0).await, Ok(Released::Done));
    // The old master still acknowledges, for as long as the isolation bound lets it.
    let Extended::Held(successor) = extended(&other, &successor, &place.ask()).await else {
        panic!("not held")
    };
    let third = newcomer(&place, &store, version, 0).await;
    assert!(third.floor >= successor.horizon, "{third:?} overlaps {successor:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_from_before_the_holder_is_a_regression() {
    let pair = Pair::start();
    let place = pair.place();
    let store = place.open().await;
    let version = place.found(&store).await;
    let early = take(&store, &place.claim(any(0, 0), version)).await;
    assert_eq!(store.release(&early, 0).await, Ok(Released::Done));
    cut_off(&pair.master, &pair.replica);
    let late = take(&store, &place.claim(any(0, 0), version)).await;
    pair.promote();
    let outcome = extended(&store, &late, &place.ask()).await;
    assert_eq!(outcome, Extended::Lost(Loss::Regressed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_master_is_left_for_the_new_one() {
    let master = Redis::start().unwrap();
    let replica = replica_of(&master);
    let sentinels = Sentinels::start(&master).unwrap();
    let place = Place::new(format!("{}?isolation=1s", sentinels.url()));
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 0), version)).await;
    let settled = || replica.cli(&["HLEN", "{frazil:lab}:w"]).unwrap() == "1\n";
    wait_until("the replica to have all", LIMIT, settled).unwrap();
    sentinels.nodes()[0].cli(&["SENTINEL", "FAILOVER", "frazil"]).unwrap();
    sentinels.wait_for_failover(master.port()).unwrap();
    let is_demoted = || master.info("role").is_ok_and(|role| role == "slave");
    wait_until("the old master to be demoted", LIMIT, is_demoted).unwrap();
    let extended =
        eventually("the new master", async || store.extend(&tenure, &place.ask()).await.ok());
    let Extended::Held(extended) = extended.await else {
        panic!("a present holder was thrown out")
    };
    assert_eq!(
        extended.settling.history.split(':').nth(1).unwrap(),
        replica.info("master_replid").unwrap()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_replaces_the_master_is_followed() {
    let cluster = RedisCluster::with_replicas(3, 1).unwrap();
    let place = Place::new(format!("{}?durability=wait:1&timeout=2s", cluster.url()));
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(0, 0), version)).await;
    let owner = cluster.master_of("{frazil:lab}:meta").unwrap();
    cluster.node(owner).kill();
    let promoted = cluster.node(owner + 3);
    eventually("the new master", async || {
        // Its only replica is the master now, so that nobody confirms.
        let error = store.extend(&tenure, &place.ask()).await.err()?;
        let replid = promoted.info("master_replid").unwrap();
        let history = promoted.cli(&["HGET", "{frazil:lab}:lineage", "history"]).unwrap();
        let is_there =
            format!("{error:#}").contains("0 of 1 replicas") && history.contains(&replid);
        is_there.then_some(())
    })
    .await;
    let unconfirmed = Place::new(cluster.url()).open().await;
    let outcome = extended(&unconfirmed, &tenure, &place.ask()).await;
    assert!(matches!(outcome, Extended::Held(_)), "{outcome:?}");
}
