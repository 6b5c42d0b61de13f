//! `frazil doctor` on real servers: what is well, what is not, and what repairs it.

mod configuration;
mod examination;
mod host;
mod secrecy;

use std::time::Duration;

use crate::shell::Shell;
use examination::Examination;
use frazil_rig::{AppendOnly, Etcd, EtcdCluster, FalseClock, Redis, ZooKeeper, wait_until};

fn durable() -> Redis {
    Redis::builder().persistent(AppendOnly::Always).start().unwrap()
}

#[test]
fn a_healthy_redis_is_well_and_nothing_is_written_to_it() {
    let (shell, redis) = (Shell::new(), durable());
    let url = redis.url();
    let found = Examination::of(&shell, &["--store", &url]);
    assert_eq!(found.code, Some(0));
    found.ok("store", "without a password, without TLS: ");
    found.ok("store-clock", "the store's");
    found.ok("guarantees", "uniqueness is unconditional");
    found.ok("namespace", "the first node will create it");
    found.ok("timing", "TTL 30s, heartbeat 10s, outage budget 10m, 5s for a request");
    found.skipped("pool", "no namespace yet");
    // The kernel has its own opinion of the machine that the tests run on.
    assert_eq!(
        found.named("warn").iter().filter(|check| **check != "clock").count(),
        0,
        "{found:?}"
    );
    assert_eq!(redis.cli(&["DBSIZE"]).unwrap(), "0\n");
    shell.data(&["store", "init", "--store", &url]);
    let before = redis.cli(&["DEBUG", "DIGEST"]).unwrap();
    let found = Examination::of(&shell, &["--store", &url]);
    assert_eq!(found.code, Some(0));
    found.ok("namespace", "workers 0 to 1023, a window of 600 s");
    found.ok("pool", "of 1024 workers: 0 held");
    assert_eq!(redis.cli(&["DEBUG", "DIGEST"]).unwrap(), before);
}

#[test]
fn a_redis_that_evicts_fails_and_the_setting_is_named() {
    let (shell, redis) = (Shell::new(), durable());
    let url = redis.url();
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    let found = Examination::of(&shell, &["--store", &url]);
    assert_eq!(found.code, Some(1));
    found.fail("guarantees", "allkeys-lru", "CONFIG SET maxmemory-policy noeviction");
    found.skipped("store", "see guarantees");
    found.skipped("pool", "could not be looked into");
    assert_eq!(found.named("fail"), ["guarantees"]);
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]).unwrap();
    let found = Examination::of(&shell, &["--store", &url]);
    assert_eq!(found.code, Some(0));
    found.warn("guarantees", "volatile-lru", "CONFIG SET maxmemory-policy noeviction");
}

#[test]
fn a_redis_that_forgets_is_warned_of_until_the_fix_was_followed() {
    let (shell, redis) = (Shell::new(), Redis::start().unwrap());
    let url = redis.url();
    let look = || Examination::of(&shell, &["--store", &url]);
    look().warn("guarantees", "a restart forgets", "CONFIG SET appendonly yes");
    redis.cli(&["CONFIG", "SET", "appendonly", "yes"]).unwrap();
    look().warn("guarantees", "appendfsync is everysec", "CONFIG SET appendfsync always");
    redis.cli(&["CONFIG", "SET", "appendfsync", "always"]).unwrap();
    let found = look();
    assert_eq!((found.code, found.details("guarantees").len()), (Some(0), 1), "{found:?}");
}

#[test]
fn what_a_user_may_not_see_is_said() {
    let (shell, redis) = (Shell::new(), durable());
    let rules = "ACL SETUSER app on >hunter2 ~* &* +@all -config";
    redis.cli(&rules.split(' ').collect::<Vec<_>>()).unwrap();
    let url = format!("redis://app@{}", redis.address());
    let found =
        Examination::with(&shell, &["--store", &url], &[("FRAZIL_STORE_PASSWORD", "hunter2")]);
    assert_eq!(found.code, Some(0));
    found.ok("store", "as \"app\" with a password");
    found.warn("guarantees", "may not be read", "+config|get");
}

#[test]
fn a_redis_with_replicas_that_are_not_waited_for_is_warned_of() {
    let (shell, redis) = (Shell::new(), durable());
    let _replica = Redis::builder().replica_of(&redis).start().unwrap();
    let found = Examination::of(&shell, &["--store", &redis.url()]);
    found.warn("guarantees", "replicas are not waited for", "durability=wait:N");
}

#[test]
fn a_store_that_is_gone_or_silent_fails_in_bounded_time_and_the_rest_is_examined() {
    let (shell, redis) = (Shell::new(), durable());
    let url = redis.url();
    redis.pause().unwrap();
    let args = ["doctor", "--json", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"];
    let args = [&args[..], &["--max-connections", "100", "--store", &url]].concat();
    let mut child = shell.command(&args).spawn().unwrap();
    wait_until("the examination of a silent store to end", Duration::from_secs(20), || {
        child.try_wait().unwrap().is_some()
    })
    .unwrap();
    let silent = Examination::ended(&child.wait_with_output().unwrap());
    redis.kill();
    let gone = Examination::of(&shell, &["--store", &url]);
    for (found, what) in [(silent, "did not answer within 5s"), (gone, "refused")] {
        assert_eq!(found.code, Some(1));
        found.fail("store", what, "check that the server runs");
        for check in ["store-clock", "guarantees", "namespace", "pool"] {
            found.skipped(check, "could not be looked into");
        }
        assert_eq!(found.named("fail"), ["store"]);
        found.ok("lifetime", "years from now");
        found.ok("descriptors", "are needed");
    }
}

#[test]
fn a_clock_that_leases_would_not_trust_fails() {
    let (shell, redis) = (Shell::new(), durable());
    let clock = FalseClock::new().unwrap();
    let environment = clock.environment();
    let url = redis.url();
    let look = || {
        let variables = [
            (environment[0].0, environment[0].1.to_str().unwrap()),
            (environment[1].0, environment[1].1.to_str().unwrap()),
        ];
        Examination::with(&shell, &["--store", &url], &variables)
    };
    clock.set_back(Duration::from_secs(2)).unwrap();
    look().warn("store-clock", "ms behind the store's", "set the clock right");
    clock.set_back(Duration::from_secs(30)).unwrap();
    let found = look();
    found.fail("store-clock", "no worker is leased", "set the clock right");
    assert_eq!(found.code, Some(1));
    clock.set_right().unwrap();
    look().ok("store-clock", "the store's");
}

#[test]
fn etcd_is_examined_member_by_member() {
    let shell = Shell::new();
    let etcd = Etcd::start().unwrap();
    let found = Examination::of(&shell, &["--store", &etcd.url()]);
    assert_eq!(found.code, Some(0));
    found.ok("guarantees", "etcd ");
    found.warn("guarantees", "one member", "run three");
    found.skipped("store-clock", "no clock of its own");
    assert_eq!(etcd.etcdctl(&["get", "--prefix", "--keys-only", ""]).unwrap().trim(), "");
    let cluster = EtcdCluster::start(3).unwrap();
    let whole = Examination::of(&shell, &["--store", &cluster.url()]);
    assert!(
        !whole.details("guarantees").iter().any(|row| row.contains("do not answer")),
        "{whole:?}"
    );
    let one = Examination::of(&shell, &["--store", &cluster.node(0).url()]);
    one.warn("guarantees", "names 1 of 3 members", "name all of them");
    cluster.node(2).kill();
    let short = Examination::of(&shell, &["--store", &cluster.url()]);
    let address = cluster.node(2).address();
    short.warn("guarantees", &format!("1 of 3 members do not answer: {address}"), "start them");
    assert_eq!(short.code, Some(0));
}

#[test]
fn a_ttl_that_the_sessions_of_zookeeper_cannot_keep_fails() {
    let (shell, zookeeper) = (Shell::new(), ZooKeeper::start().unwrap());
    let url = zookeeper.url();
    let found = Examination::of(&shell, &["--store", &url]);
    assert_eq!(found.code, Some(0));
    found.warn("guarantees", "a single server", "three or five");
    found.warn("guarantees", "can change the records", "log in");
    let found = Examination::of(&shell, &["--store", &url, "--ttl", "40s"]);
    found.fail("guarantees", "longer than a session", "?session= to 40s");
    assert_eq!(found.code, Some(1));
    let longer = format!("{url}?session=90s");
    let found = Examination::of(&shell, &["--store", &longer]);
    found.warn("guarantees", "sessions last 60s and not 90s", "maxSessionTimeout");
    // Nothing was created: a namespace that is looked at has no nodes.
    let shown = shell.data(&["store", "show", "--store", &url]);
    assert!(shown.contains("not created yet"), "{shown}");
}

#[test]
fn a_restart_that_may_have_lost_writes_and_lost_records_are_told_of() {
    let shell = Shell::new();
    let redis = Redis::builder().persistent(AppendOnly::EverySecond).start().unwrap();
    let url = redis.url();
    shell.data(&["store", "init", "--store", &url, "--workers", "0-9"]);
    shell.data(&["next", "--store", &url]);
    let records = redis.cli(&["HKEYS", "{frazil:default}:w"]).unwrap();
    redis.cli(&["HDEL", "{frazil:default}:w", records.trim()]).unwrap();
    let found = Examination::of(&shell, &["--store", &url]);
    assert_eq!(found.code, Some(0));
    let repair = format!("frazil store repair --store {url}");
    found.warn("pool", "1 worker without a record", &repair);
    redis.restart().unwrap();
    let found = Examination::of(&shell, &["--store", &url]);
    found.fail("pool", "nobody new is let in before 20", "wait until then");
    assert_eq!(found.code, Some(1));
}
