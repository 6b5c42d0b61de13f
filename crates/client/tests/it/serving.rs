//! The client with real servers.

mod blocking;
mod discovery;
mod secured;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frazil_client::{Client, Error, Event, Id, Layout, Reason};

use crate::site::{Site, many, repeated};

#[tokio::test]
async fn ids_come_from_the_pool_and_are_distinct() {
    let site = Site::start().await;
    let client = site.client().await;
    let ids = many(&client, 50_000).await;
    assert_eq!(repeated(&ids), 0);
    let stats = client.stats();
    assert_eq!(stats.hits + stats.waits, 50_000, "{stats:?}");
    assert!(stats.hits > 45_000, "hardly any waited: {stats:?}");
    assert!(stats.requests < 100, "they came in batches: {stats:?}");
    assert!(stats.refills > 1 && stats.latency_max > Duration::ZERO, "{stats:?}");
    assert_eq!((stats.retries, stats.failures), (0, 0));
    // The checker sees what it should.
    assert_eq!(repeated(ids.iter().chain(&ids[..3])), 3);
    site.stop().await;
}

#[tokio::test]
async fn a_batch_is_exact_however_many_requests_it_takes() {
    let site = Site::start_with(|config| config.limits.max_count = 10).await;
    let client = site.client().await;
    assert_eq!(client.info().await.unwrap().max_count, 10);
    let mut all = Vec::new();
    for count in [0, 1, 9, 10, 11, 95] {
        let before = client.stats().requests;
        let ids = client.batch(count).await.unwrap();
        assert_eq!(ids.len(), count);
        assert_eq!(client.stats().requests - before, count.div_ceil(10) as u64);
        assert!(ids.chunks(10).all(|part| part.is_sorted()));
        all.extend(ids);
    }
    all.extend(many(&client, 100).await);
    assert_eq!(repeated(&all), 0);
    site.stop().await;
}

#[tokio::test]
async fn a_server_with_a_lower_limit_than_the_others_is_still_of_use() {
    let low = Site::start_with(|config| config.limits.max_count = 64).await;
    let high = Site::start().await;
    // Learns the limit of one of them, and meets the other.
    let client = Client::builder().endpoints([high.http(), low.http()]).build().unwrap();
    for _ in 0..20 {
        assert_eq!(client.batch(1000).await.unwrap().len(), 1000);
    }
    high.stop().await;
    low.stop().await;
}

#[tokio::test]
async fn calls_that_wait_share_a_request() {
    const CALLS: usize = 200;
    let site = Site::start().await;
    let client = Client::builder().endpoint(site.http()).prefetch(0).connect().await.unwrap();
    let before = client.stats().requests;
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.next().await.unwrap() })
        })
        .collect();
    let mut ids = Vec::new();
    for call in calls {
        ids.push(call.await.unwrap());
    }
    let requests = client.stats().requests - before;
    assert_eq!(repeated(&ids), 0);
    assert!(requests <= 4, "{requests} requests for {CALLS} calls at a time");
    // The control: calls one after the other have one each.
    many(&client, 5).await;
    assert_eq!(client.stats().requests - before - requests, 5);
    assert_eq!((client.stats().hits, client.stats().pooled), (0, 0));
    site.stop().await;
}

#[tokio::test]
async fn a_call_that_was_given_up_costs_nobody_an_answer() {
    let site = Site::start().await;
    let client = Client::builder().endpoint(site.http()).prefetch(0).connect().await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..200 {
        let (one, other) = (client.clone(), client.clone());
        let given_up = tokio::spawn(async move { one.next().await });
        let kept = tokio::spawn(async move { other.next().await });
        tokio::task::yield_now().await;
        given_up.abort();
        ids.push(kept.await.unwrap().unwrap());
        if let Ok(Ok(id)) = given_up.await {
            ids.push(id);
        }
    }
    assert_eq!(repeated(&ids), 0);
    site.stop().await;
}

#[tokio::test]
async fn try_next_never_waits_and_gets_the_pool_filled() {
    let site = Site::start().await;
    let client = Client::builder().endpoint(site.http()).build().unwrap();
    assert_eq!(client.try_next(), None, "nothing was fetched yet");
    let limit = Duration::from_secs(30);
    let filled = async {
        loop {
            if let Some(id) = client.try_next() {
                return id;
            }
            tokio::task::yield_now().await;
        }
    };
    let first = tokio::time::timeout(limit, filled).await.unwrap();
    let second = client.try_next().unwrap();
    assert_ne!(first, second);
    site.stop().await;
}

#[tokio::test]
async fn ids_that_are_too_old_are_dropped() {
    let site = Site::start().await;
    let age = Duration::from_millis(50);
    let builder = Client::builder().endpoint(site.http());
    let (strict, lax) = (
        builder.clone().max_age(age).build().unwrap(),
        builder.max_age(Duration::from_secs(3600)).build().unwrap(),
    );
    strict.next().await.unwrap();
    lax.next().await.unwrap();
    tokio::time::timeout(age * 3, std::future::pending::<()>()).await.unwrap_err();
    let asked_ms = |client: &Client, id: Id| client.unix_ms(id).unwrap();
    let (young, old) = (strict.next().await.unwrap(), lax.next().await.unwrap());
    assert!(strict.stats().discarded > 0);
    assert!(asked_ms(&strict, young) >= asked_ms(&lax, old) + 50, "and so its time is honest");
    // The control: without the limit it comes from the pool.
    assert_eq!((lax.stats().discarded, lax.stats().hits), (0, 1));
    site.stop().await;
}

#[tokio::test]
async fn ids_are_taken_apart_offline() {
    let site = Site::start().await;
    let fresh = Client::builder().endpoint(site.http()).build().unwrap();
    assert!(matches!(fresh.decode(Id::from_u64(1)), Err(Error::NoLayout)));
    let client = site.client().await;
    let id = client.next().await.unwrap();
    site.stop().await;
    assert_eq!(client.layout(), Some(Layout::FRAZIL));
    assert_eq!(client.decode(id).unwrap(), Layout::FRAZIL.decode(id).unwrap());
    let ms = i64::try_from(client.unix_ms(id).unwrap()).unwrap();
    let range = client.range(ms..ms + 1).unwrap();
    assert!(range.contains(&id) && !client.range(ms + 1..ms + 2).unwrap().contains(&id));
    assert!(matches!(client.range(ms..ms), Err(Error::Time(_))));
    assert!(matches!(client.decode(Id::from_u64(u64::MAX)), Err(Error::OutsideLayout(_))));
}

#[tokio::test]
async fn another_layout_than_expected_is_refused() {
    let site = Site::start().await;
    let builder = Client::builder().endpoint(site.http());
    let error = builder.clone().layout(Layout::DISCORD).connect().await.unwrap_err();
    assert!(!error.is_retryable() && error.to_string().contains("layout"), "{error}");
    builder.layout(Layout::FRAZIL).connect().await.unwrap();
    site.stop().await;
}

#[tokio::test]
async fn a_scope_is_asked_for_and_an_undeclared_one_is_refused() {
    let site = Site::start_with(|config| config.scopes = vec!["orders".into()]).await;
    let builder = Client::builder().endpoints([site.http(), site.grpc()]);
    let client = builder.clone().scope("orders").connect().await.unwrap();
    many(&client, 10).await;
    for endpoint in [site.http(), site.grpc()] {
        let client = Client::builder().endpoint(endpoint).scope("web&").build().unwrap();
        let error = client.next().await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::NotFound), "{error}");
        assert!(!error.is_retryable());
        assert_eq!(client.stats().retries, 0, "no retry would help");
    }
    site.stop().await;
}

#[tokio::test]
async fn grpc_gives_the_same() {
    let site = Site::start_with(|config| config.limits.max_count = 5000).await;
    let client = Client::connect([site.grpc()]).await.unwrap();
    let info = client.info().await.unwrap();
    assert_eq!((info.node.as_str(), info.max_count), ("tested", 5000));
    assert_eq!((info.layout, info.state.as_str()), (Layout::FRAZIL, "ready"));
    let mut ids = many(&client, 20_000).await;
    ids.extend(client.batch(12_345).await.unwrap());
    assert_eq!((ids.len(), repeated(&ids)), (32_345, 0));
    site.stop().await;
    // A server that is gone is a typed error here, too.
    client.close();
    assert!(matches!(client.next().await, Err(Error::Closed)));
}

#[tokio::test]
async fn when_a_server_goes_another_is_asked() {
    let (one, two) = (Site::start().await, Site::start().await);
    let (gone, events) = (one.http(), Arc::new(Mutex::new(Vec::new())));
    let seen = events.clone();
    let client = Client::builder()
        .endpoints([one.http(), one.grpc(), two.http()])
        .observer(move |event: &Event<'_>| seen.lock().unwrap().push(format!("{event:?}")))
        .prefetch(10)
        .connect()
        .await
        .unwrap();
    let mut ids = many(&client, 500).await;
    one.stop().await;
    ids.extend(many(&client, 500).await);
    assert_eq!(repeated(&ids), 0);
    let stats = client.stats();
    assert!(stats.failovers > 0 && stats.failures > 0, "{stats:?}");
    assert!(stats.retries <= stats.requests, "{stats:?}");
    let events = events.lock().unwrap().clone();
    let told = |what: &str| events.iter().any(|event| event.starts_with(what));
    assert!(told("Failed") && told("Retried") && told("Answered") && told("Refilled"));
    assert!(told("Waited"), "{gone}");
    two.stop().await;
}

#[tokio::test]
async fn a_server_that_comes_back_is_asked_again() {
    let one = Site::start().await;
    let two = Site::start().await;
    let address = one.addrs.http.unwrap();
    let answered = Arc::new(AtomicU64::new(0));
    let (count, name) = (answered.clone(), one.http());
    let client = Client::builder()
        .endpoints([one.http(), two.http()])
        .observer(move |event: &Event<'_>| {
            if matches!(event, Event::Answered { endpoint, ids: 1.., .. } if *endpoint == name) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
        .backoff(Duration::from_millis(1)..=Duration::from_millis(20))
        .prefetch(0)
        .build()
        .unwrap();
    one.stop().await;
    many(&client, 50).await;
    assert_eq!(answered.load(Ordering::Relaxed), 0);
    let one = Site::start_with(|config| config.http = Some(address)).await;
    let back = async {
        while answered.load(Ordering::Relaxed) == 0 {
            client.next().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), back).await.unwrap();
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_closed_client_gives_nothing_and_says_so() {
    let site = Site::start().await;
    let client = site.client().await;
    client.next().await.unwrap();
    let clone = client.clone();
    client.close();
    assert_eq!(clone.try_next(), None);
    for error in [
        clone.next().await.unwrap_err(),
        clone.batch(3).await.unwrap_err(),
        clone.info().await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Closed) && !error.is_retryable());
    }
    assert_eq!(clone.stats().pooled, 0);
    site.stop().await;
}

/// A connection is served by the runtime that opened it, which may stand still.
#[test]
fn a_runtime_that_stands_still_holds_nobody_up() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let serving = tokio::runtime::Runtime::new().unwrap();
    let site = serving.block_on(Site::start());
    let (one, other) = (runtime(), runtime());
    let client = Client::builder().endpoint(site.http()).prefetch(0).discover(false);
    let client = client.build().unwrap();
    for runtime in [&one, &one, &other, &other, &one] {
        runtime.block_on(client.batch(2)).unwrap();
    }
    let stats = client.stats();
    assert_eq!((stats.retries, stats.failures), (0, 0), "{stats:?}");
    serving.block_on(site.stop());
}
