//! What the version before this one wrote.

use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Extended, Leasing, Released, Settling, Tenure};
use frazil_coord::{Found, Group, Nonce, Slot, Store, Token, Version};
use frazil_rig::{AppendOnly, Redis};

use crate::redis::lab::{Place, any, take};

const NONCE: &str = "000102030405060708090a0b0c0d0e0f";

/// Writes a namespace with worker 0 held and worker 1 released, word for word as it did.
fn write_old(redis: &Redis, place: &Place, now: u64) -> Tenure {
    let cli = |words: &[&str]| redis.cli(words).unwrap();
    let replid = redis.info("master_replid").unwrap();
    let (version, expires, horizon) = (now * 1000, now + 30_000, now + 60_000);
    let incarnation = "aa0102030405060708090a0b0c0d0e0f";
    let meta = format!(
        "{{\"version\":{version},\"format\":1,\"incarnation\":\"{incarnation}\",\"layout\":\"lab\",\
         \"first_worker\":0,\"last_worker\":1023,\"window_ms\":{},\"quarantine\":0,\"created\":{now}}}",
        place.window_ms
    );
    let held = format!(
        "{{\"version\":{version},\"token\":{now},\"floor\":0,\"horizon\":{horizon},\"renewed\":{now},\
         \"nonce\":\"{NONCE}\",\"holder\":\"old\",\"expires\":{expires},\"info\":{{\"host\":\"a\"}},\
         \"lineage\":\"{replid}\"}}"
    );
    let free = format!(
        "{{\"version\":{version},\"token\":{now},\"floor\":0,\"horizon\":{},\"renewed\":{now},\
         \"nonce\":null,\"holder\":\"old\",\"lineage\":\"{replid}\"}}",
        now - 1000
    );
    let (window, expires_text) = (place.window_ms.to_string(), expires.to_string());
    cli(&["SET", "{frazil:lab}:meta", &meta]);
    let lineage =
        ["HSET", "{frazil:lab}:lineage", "replid", &replid, "guard", "0", "widest", &window];
    cli(&[&lineage[..], &["sure", "0", "unbroken", "", "since", "0", "marked:w", "1"]].concat());
    cli(&["HSET", "{frazil:lab}:w", "0", &held, "1", &free]);
    cli(&["SADD", "{frazil:lab}:born", "w/", "w/0", "w/1"]);
    cli(&["ZADD", "{frazil:lab}:w:held", &expires_text, "0"]);
    cli(&["ZADD", "{frazil:lab}:w:idx", &(now - 1000).to_string(), "1"]);
    cli(&["HSET", "{frazil:lab}:w:nonces", NONCE, "0"]);
    Tenure {
        slot: Slot::worker(0),
        token: Token(now),
        nonce: NONCE.parse::<Nonce>().unwrap(),
        holder: "old".into(),
        info: [("host".to_owned(), "a".to_owned())].into(),
        version: Version(version),
        floor: 0,
        horizon,
        renewed: 0,
        usable: horizon,
        expires: Some(expires),
        store_now: None,
        incarnation: incarnation.parse().unwrap(),
        settling: Settling::default(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_version_before_wrote_goes_on_and_the_first_restart_keeps_its_guard() {
    let redis = Redis::builder().persistent(AppendOnly::EverySecond).start().unwrap();
    let place = Place::new(redis.url()).window(120_000);
    let tenure = write_old(&redis, &place, unix_ms());
    let store = place.open().await;
    let meta = store.meta().await.unwrap().unwrap();
    assert_eq!(store.guard().await.unwrap(), None, "nothing was lost");
    let listed = store.list(Group::Workers).await.unwrap();
    assert!(listed.iter().all(|entry| matches!(entry.found, Found::Known(_))), "{listed:?}");
    let Extended::Held(held) = store.extend(&tenure, &place.ask()).await.unwrap() else {
        panic!("the holder was thrown out")
    };
    assert!(held.horizon > tenure.horizon && held.token == tenure.token, "{held:?}");
    let freed = take(&store, &place.claim(any(1, 1), meta.version)).await;
    assert!(freed.floor >= tenure.token.0 - 1000 && freed.token > tenure.token, "{freed:?}");
    let Acquired::Full(census) =
        store.acquire(&place.claim(any(0, 1), meta.version)).await.unwrap()
    else {
        panic!("a held worker was given out")
    };
    assert_eq!(census.held, 2);
    assert_eq!(store.release(&freed, freed.floor).await, Ok(Released::Done));
    assert!(!store.settle_all().await.unwrap(), "what the old version writes does not settle");
    redis.restart().unwrap();
    let before = unix_ms();
    let guard = store.guard().await.unwrap().expect("newcomers do not wait");
    assert!(guard.until >= before + place.window_ms, "{guard:?}");
    let acquired = store.acquire(&place.claim(any(2, 2), meta.version)).await.unwrap();
    assert!(matches!(acquired, Acquired::Full(_)), "{acquired:?}");
    // Its presence outlasted the restart, so that nobody can have been let in.
    let outcome = store.extend(&held, &place.ask()).await.unwrap();
    assert!(matches!(outcome, Extended::Held(_)), "{outcome:?}");
    // From now on all settles; but a process of the version before may still be there.
    redis.restart().unwrap();
    let replid = redis.info("master_replid").unwrap();
    redis.cli(&["HSET", "{frazil:lab}:lineage", "replid", &replid]).unwrap();
    store.read(&[Slot::worker(0)]).await.unwrap();
    redis.restart().unwrap();
    let before = unix_ms();
    let guard = store.guard().await.unwrap().expect("newcomers do not wait");
    assert!(guard.until >= before + place.window_ms, "{guard:?}");
}
