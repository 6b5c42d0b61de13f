//! Many at once, and large pools.

use std::collections::BTreeSet;
use std::sync::Arc;

use frazil_coord::internal::time::boot_time;
use frazil_coord::internal::{Acquired, Leasing};
use frazil_rig::Redis;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::redis::lab::{Place, any, take};

const CLIENTS: usize = 64;
const POOL: u32 = 1024;

/// How many scripts the server was asked to run.
fn requests(redis: &Redis) -> u32 {
    let stat = redis.cli(&["INFO", "commandstats"]).unwrap();
    let scripts = stat.lines().filter(|line| line.starts_with("cmdstat_eval"));
    let calls = scripts.filter_map(|line| line.split("calls=").nth(1)?.split(',').next());
    calls.map(|calls| calls.parse::<u32>().unwrap()).sum()
}

#[tokio::test]
async fn the_first_claim_of_a_namespace_takes_two_requests() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    // A pool that is read as a whole, and one that is not.
    for last in [9, POOL - 1] {
        redis.cli(&["FLUSHALL"]).unwrap();
        redis.cli(&["SCRIPT", "FLUSH"]).unwrap();
        let (founder, store) = (place.open().await, place.open().await);
        let version = place.found(&founder).await;
        redis.cli(&["CONFIG", "RESETSTAT"]).unwrap();
        take(&store, &place.claim(any(0, last), version)).await;
        assert_eq!(requests(&redis), 2, "a look and a commit");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_claims_at_once_take_three_requests_each_at_the_most() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let mut stores = Vec::new();
    for _ in 0..CLIENTS {
        stores.push(Arc::new(place.open().await));
    }
    let version = place.found(&stores[0]).await;
    // Nobody has claimed anything yet: neither the server nor the namespace is prepared for it.
    redis.cli(&["CONFIG", "RESETSTAT"]).unwrap();
    let gate = Arc::new(Barrier::new(POOL as usize + 1));
    let mut claims = JoinSet::new();
    for number in 0..POOL {
        let (store, gate) = (stores[number as usize % CLIENTS].clone(), gate.clone());
        let claim = place.claim(any(0, POOL - 1), version);
        claims.spawn(async move {
            gate.wait().await;
            store.acquire(&claim).await.unwrap()
        });
    }
    gate.wait().await;
    let before = boot_time();
    let mut taken = BTreeSet::new();
    while let Some(acquired) = claims.join_next().await {
        match acquired.unwrap() {
            Acquired::Held(tenure) => assert!(taken.insert(tenure.slot.number())),
            other => panic!("{other:?}"),
        }
    }
    let took = boot_time() - before;
    let operations = requests(&redis);
    println!("{POOL} claims from {CLIENTS} connections: {took:?}, {operations} operations");
    assert_eq!(taken.len(), POOL as usize);
    assert!(operations <= 3 * POOL, "{operations} requests");
    match stores[0].acquire(&place.claim(any(0, POOL - 1), version)).await.unwrap() {
        Acquired::Full(census) => assert_eq!((census.held, census.blocked), (POOL, 0)),
        other => panic!("{other:?}"),
    }
}

/// Fills a pool with records of free workers as if they had been used: quicker than to use them.
const FILL: &str = "
    for number = tonumber(ARGV[1]), tonumber(ARGV[2]) do
        redis.call('HSET', KEYS[1], number, '{\"version\":1,\"token\":1,\"floor\":0,\"horizon\":' ..
            ARGV[3] .. ',\"renewed\":1,\"nonce\":null,\"holder\":\"x\"' .. ARGV[4] .. '}')
        redis.call('SADD', KEYS[2], 'w/' .. number)
        redis.call('ZADD', KEYS[3], ARGV[5], number)
    end";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_pool_is_no_slower() {
    const LARGE: u32 = 65_536;
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let fill = |first: u32, last: u32, index: &str, expires: &str, score: &str| {
        let (records, index) = ("{frazil:lab}:w", format!("{{frazil:lab}}:w:{index}"));
        let (first, last) = (first.to_string(), last.to_string());
        let arguments = ["EVAL", FILL, "3", records, "{frazil:lab}:born", &index, &first, &last];
        let arguments = [&arguments[..], &["5", expires, score]].concat();
        assert_eq!(redis.cli(&arguments).unwrap().trim(), "");
    };
    let timed = async |what: &str, rounds: u32| {
        redis.cli(&["CONFIG", "RESETSTAT"]).unwrap();
        let before = boot_time();
        for _ in 0..rounds {
            take(&store, &place.claim(any(0, LARGE - 1), version)).await;
        }
        println!("{what}: {:?} each; {}", (boot_time() - before) / rounds, scripts(&redis));
    };
    timed("a new worker of 65,536", 200).await;
    let free = LARGE / 2;
    fill(0, free - 1, "idx", "", "5");
    timed("a worker of 65,536, half of them used and free", 200).await;
    let far = frazil_coord::internal::time::unix_ms() + 1_000_000;
    fill(free, LARGE - 101, "held", &format!(",\"expires\":{far}"), &far.to_string());
    fill(LARGE - 100, LARGE - 1, "held", ",\"expires\":7", "7");
    timed("a worker of 65,536, none of them new", 200).await;
    fill(0, LARGE - 1, "held", &format!(",\"expires\":{far}"), &far.to_string());
    redis.cli(&["DEL", "{frazil:lab}:w:idx"]).unwrap();
    let before = boot_time();
    for _ in 0..100 {
        match store.acquire(&place.claim(any(0, LARGE - 1), version)).await.unwrap() {
            Acquired::Full(census) => assert_eq!((census.held, census.blocked), (LARGE, 0)),
            other => panic!("{other:?}"),
        }
    }
    println!("a full pool of 65,536: {:?} each", (boot_time() - before) / 100);
}

/// What the server counted of scripts called by name.
fn scripts(redis: &Redis) -> String {
    let stats = redis.cli(&["INFO", "commandstats"]).unwrap();
    stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap_or_default().to_owned()
}
