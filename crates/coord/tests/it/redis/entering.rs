//! Getting in: what is refused, and as what.

use std::net::TcpListener;
use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released};
use frazil_coord::{ErrorKind, Found, Group, Loss, Presence, Put, Slot, Store};
use frazil_rig::{Certificates, Proxy, Redis, RedisCluster, Sentinels};

use crate::redis::lab::{Place, any, replica_of, take};

/// The rule in the documentation of the store, with the password in it.
const RULE: &str = "on >hunter2 resetkeys ~{frazil:* resetchannels &{frazil:* -@all +eval +evalsha \
    +info +time +ping +wait +publish +subscribe +get +set +exists +hget +hset +hdel +hmget +hkeys +hlen \
    +sadd +srem +sismember +smembers +zadd +zrem +zrange +zrangebyscore +zcard +zcount";

/// The error of connecting, which must come in time and without the password.
async fn refusal(url: impl Into<String>) -> (ErrorKind, String) {
    let place = Place::new(url);
    let before = boot_time();
    let error = place.try_open().await.expect_err(&place.url);
    assert!(boot_time() - before < Duration::from_secs(8), "{error} took too long");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    (error.kind(), format!("{error:#}"))
}

#[tokio::test]
async fn a_wrong_password_and_none_are_denied() {
    let redis = Redis::builder().password("secret-of-the-server").start().unwrap();
    for login in ["", ":hunter2@", "nobody:hunter2@"] {
        let (kind, said) = refusal(format!("redis://{login}{}", redis.address())).await;
        assert_eq!(kind, ErrorKind::Denied, "{login:?}: {said}");
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["redis", "rediss", "redis+cluster"] {
        let (kind, said) = refusal(format!("{scheme}://{address}")).await;
        assert_eq!(kind, ErrorKind::Unavailable, "{said}");
    }
    let (kind, said) = refusal(format!("redis+sentinel://{address}/frazil")).await;
    assert_eq!(kind, ErrorKind::Unavailable, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_port_is_unavailable_within_the_time_out() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    proxy.black_hole();
    for scheme in ["redis", "rediss", "redis+cluster"] {
        let before = boot_time();
        let (kind, said) = refusal(format!("{scheme}://{}?timeout=300ms", proxy.address())).await;
        assert_eq!(kind, ErrorKind::Unavailable, "{said}");
        assert!(boot_time() - before < Duration::from_secs(3), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tls_refuses_is_said_clearly() {
    let certificates = Certificates::generate().unwrap();
    let strict = Redis::builder().tls(&certificates).line("tls-auth-clients yes");
    let (secret, strict) =
        (Redis::builder().tls(&certificates).start().unwrap(), strict.start().unwrap());
    let plain = Redis::start().unwrap();
    let (ca, other) = (certificates.ca().display(), certificates.other_ca().display());
    let cases = [
        (format!("redis://{}?timeout=1s", secret.address()), ErrorKind::Unavailable, "rediss:"),
        (
            format!("rediss://{}?timeout=1s&ca={ca}", plain.address()),
            ErrorKind::Unavailable,
            "without it",
        ),
        (format!("rediss://{}?ca={other}", secret.address()), ErrorKind::Denied, "ca"),
        (format!("rediss://{}?ca={ca}", strict.address()), ErrorKind::Denied, "cert and key"),
    ];
    for (url, expected, word) in cases {
        let (kind, said) = refusal(&url).await;
        assert_eq!(kind, expected, "{said}");
        assert!(said.contains(word), "{said}");
    }
    Place::new(format!("rediss://{}?ca={ca}", secret.address())).open().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_an_invalid_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let nonsense = directory.path().join("nonsense.pem");
    std::fs::write(&nonsense, "not a certificate").unwrap();
    let nonsense = nonsense.display();
    for url in [
        "redis://a,b".to_owned(),
        "redis://me@a".to_owned(),
        "redis://a?durability=often".to_owned(),
        "redis://a?durability=wait:0".to_owned(),
        "redis://a?isolation=long".to_owned(),
        "redis://a?isolation=25h".to_owned(),
        "redis://a?prefix=%7Bx%7D".to_owned(),
        "redis://a?password_file=/nowhere/at/all".to_owned(),
        "rediss://a?ca=/nowhere/at/all".to_owned(),
        format!("rediss://a?ca={nonsense}"),
        format!("rediss://a?cert={nonsense}&key={nonsense}"),
    ] {
        let (kind, said) = refusal(&url).await;
        assert_eq!(kind, ErrorKind::InvalidConfig, "{url}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_a_cluster_node_and_an_unknown_master_are_refused() {
    let master = Redis::start().unwrap();
    let replica = replica_of(&master);
    let (kind, said) = refusal(replica.url()).await;
    assert_eq!(kind, ErrorKind::Unsafe, "{said}");
    let sentinels = Sentinels::start(&master).unwrap();
    let unknown = sentinels.url().replace("/frazil", "/nobody");
    let (kind, said) = refusal(unknown).await;
    assert_eq!(kind, ErrorKind::InvalidConfig, "{said}");
    assert!(said.contains("nobody"), "{said}");
    let cluster = RedisCluster::start(3).unwrap();
    let owner = cluster.master_of("{frazil:lab}:born").unwrap();
    let (kind, said) = refusal(cluster.node(owner).url()).await;
    assert_eq!(kind, ErrorKind::InvalidConfig, "{said}");
    let (kind, said) = refusal(format!("redis+cluster://{}", master.address())).await;
    assert_eq!(kind, ErrorKind::InvalidConfig, "{said}");
    assert!(said.contains("use redis:"), "{said}");
    let (kind, said) = refusal(cluster.node((owner + 1) % 3).url()).await;
    assert_eq!(kind, ErrorKind::InvalidConfig, "{said}");
    assert!(said.contains("redis+cluster:"), "{said}");
}

#[tokio::test]
async fn a_server_that_evicts_is_refused() {
    for (policy, is_refused) in
        [("allkeys-lru", true), ("allkeys-random", true), ("volatile-lru", false)]
    {
        let redis = Redis::builder().line(format!("maxmemory-policy {policy}")).start().unwrap();
        let opened = Place::new(redis.url()).try_open().await;
        match opened {
            Ok(_) => assert!(!is_refused, "{policy}"),
            Err(error) => {
                assert!(is_refused && error.kind() == ErrorKind::Unsafe, "{error}");
                assert!(format!("{error:#}").contains("noeviction"), "{error}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_user_can_do_everything_and_no_other_key() {
    let redis = Redis::start().unwrap();
    let mut rule = vec!["ACL", "SETUSER", "app"];
    rule.extend(RULE.split_whitespace());
    assert_eq!(redis.cli(&rule).unwrap().trim(), "OK");
    let url = format!("redis://app:hunter2@{}?durability=wait:1&timeout=1s", redis.address());
    let place = Place::new(url.replace("durability=wait:1&", ""));
    let store = place.open().await;
    let version = place.found(&store).await;
    let mut changes = store.watch(&frazil_coord::Watched::Group(Group::Workers)).await.unwrap();
    let tenure = take(&store, &place.claim(any(0, 3), version)).await;
    assert_eq!(changes.next().await, Some(()));
    assert!(matches!(store.extend(&tenure, &place.ask()).await, Ok(Extended::Held(_))));
    assert_eq!(store.list(Group::Workers).await.unwrap().len(), 1);
    assert_eq!(store.release(&tenure, 0).await, Ok(Released::Done));
    let Found::Known(record) = store.list(Group::Workers).await.unwrap().remove(0).found else {
        panic!("no record")
    };
    let slot = Slot::named(Group::Scopes, "s").unwrap();
    assert!(matches!(store.put(&slot, frazil_coord::Version(0), &record).await, Ok(Put::Done(_))));
    // No replica: the same user may ask for one, and is told that there is none.
    let waiting = Place::new(&url).open().await;
    let error = waiting.put_meta(Some(version), &place.meta()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    let (kind, said) = refusal(format!("{url}&prefix=other")).await;
    assert_eq!(kind, ErrorKind::Denied, "{said}");
}

#[tokio::test]
async fn a_user_with_too_few_rights_is_told_which() {
    let redis = Redis::start().unwrap();
    for (lacks, named) in [
        ("-info", "+info"),
        ("-eval", "+eval"),
        ("-evalsha", "+evalsha"),
        ("-zadd", "+zadd"),
        ("-hkeys", "+hkeys"),
        ("-subscribe", "+subscribe"),
        ("resetchannels", "+publish +subscribe"),
        ("-wait", "+wait"),
    ] {
        let mut rule = vec!["ACL", "SETUSER", "app", "reset"];
        rule.extend(RULE.split_whitespace());
        rule.push(lacks);
        assert_eq!(redis.cli(&rule).unwrap().trim(), "OK");
        let (kind, said) = refusal(format!("redis://app:hunter2@{}", redis.address())).await;
        assert_eq!(kind, ErrorKind::Denied, "{lacks}: {said}");
        assert!(said.contains(named), "{lacks}: {said}");
    }
}

#[tokio::test]
async fn meta_of_a_newer_format_and_broken_meta_are_told_apart() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    for (text, expected) in [
        ("{\"version\":7,\"format\":99}", ErrorKind::NewerFormat),
        ("not json", ErrorKind::Corrupt),
        ("{\"format\":1}", ErrorKind::Corrupt),
        ("[]", ErrorKind::Corrupt),
    ] {
        redis.cli(&["SET", "{frazil:lab}:meta", text]).unwrap();
        let read = store.meta().await.unwrap_err();
        let acquired = store.acquire(&place.claim(any(0, 3), version)).await.unwrap_err();
        assert_eq!((read.kind(), acquired.kind()), (expected, expected), "{text}: {read}");
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_lost_and_blocked_until_it_is_put_again() {
    let redis = Redis::start().unwrap();
    let place = Place::new(redis.url());
    let store = place.open().await;
    let version = place.found(&store).await;
    let tenure = take(&store, &place.claim(any(7, 7), version)).await;
    let Found::Known(record) = store.list(Group::Workers).await.unwrap().remove(0).found else {
        panic!("no record")
    };
    for garbage in ["garbage", "{}", "{\"version\":3}", "", "[1,2]"] {
        redis.cli(&["HSET", "{frazil:lab}:w", "7", garbage]).unwrap();
        let extended = store.extend(&tenure, &place.ask()).await.unwrap();
        assert_eq!(extended, Extended::Lost(Loss::Vanished), "{garbage}");
        let entry = store.list(Group::Workers).await.unwrap().remove(0);
        assert_eq!((&entry.found, entry.presence), (&Found::Lost, Presence::Free), "{garbage}");
        for choice in [any(7, 7), Choice::This(entry.slot.clone(), entry.version)] {
            match store.acquire(&place.claim(choice, version)).await.unwrap() {
                // A pool takes its word for who is present from the index, until that has passed.
                Acquired::Full(census) => {
                    assert_eq!(census.held + census.blocked, 1, "{garbage}: {census:?}");
                }
                other => panic!("{garbage}: {other:?}"),
            }
        }
        let put = store.put(&entry.slot, entry.version, &record).await.unwrap();
        assert!(matches!(put, Put::Done(_)), "{garbage}: {put:?}");
    }
}
