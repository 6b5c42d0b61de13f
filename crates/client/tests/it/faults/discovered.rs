//! Servers that are learned from others, and what may be wrong with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::TcpListener;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

async fn honest() -> Impostor {
    Impostor::start(|_| Act::Ids).await
}

fn discovering(given: &Impostor) -> Builder {
    direct([given.url()]).discover_every(Duration::from_millis(1))
}

/// Takes IDs until something is so.
async fn until(client: &Client, what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            client.next().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "{what}: {:?}", client.stats());
}

#[tokio::test]
async fn a_discovered_server_is_used_and_dropped_when_it_has_left() {
    let (given, other) = (honest().await, honest().await);
    given.list_nodes(&[(&other.url(), ""), (&given.url(), "")]);
    let client = discovering(&given).build().unwrap();
    until(&client, "it joins", || other.asked() > 0).await;
    assert_eq!((client.stats().endpoints, client.stats().joined), (2, 1));
    // Whoever is asked about the cluster, nobody is listed any more.
    given.list_nodes(&[]);
    other.list_nodes(&[]);
    until(&client, "it leaves", || client.stats().left > 0).await;
    let before = other.asked();
    many(&client, 50).await;
    assert_eq!(other.asked(), before);
    assert_eq!(client.stats().endpoints, 1, "the given one is kept");
    // The control: who does not want it asks the given one alone.
    given.list_nodes(&[(&other.url(), "")]);
    let plain = direct([given.url()]).build().unwrap();
    many(&plain, 50).await;
    assert_eq!((plain.stats().joined, plain.stats().endpoints), (0, 1));
    assert_eq!(other.asked(), before);
}

#[tokio::test]
async fn an_address_is_used_only_after_it_has_answered_as_one_of_the_cluster() {
    let (given, other) = (honest().await, honest().await);
    // One that listens and says nothing, one that nobody listens at, and no address at all.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    given.list_nodes(&[(&silent_url, ""), ("http://127.0.0.1:1", ""), ("nonsense", "")]);
    let client = discovering(&given).build().unwrap();
    let asked = Arc::new(AtomicBool::new(false));
    let was_asked = asked.clone();
    let silence = tokio::spawn(async move {
        let (stream, _) = silent.accept().await.unwrap();
        was_asked.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
        drop(stream);
    });
    until(&client, "it is asked", || asked.load(Ordering::Relaxed)).await;
    many(&client, 50).await;
    assert_eq!((client.stats().joined, client.stats().endpoints), (0, 1));
    assert_eq!(client.stats().failures, 0, "no request was made there");
    silence.abort();
    // The control: one that answers joins, the others notwithstanding.
    given.list_nodes(&[("http://127.0.0.1:1", ""), (&other.url(), "")]);
    until(&client, "it joins", || other.asked() > 0).await;
    assert_eq!(client.stats().joined, 1);
}

#[tokio::test]
async fn servers_of_our_zone_are_asked_while_they_are_well() {
    let (given, far) = (honest().await, honest().await);
    let is_busy = Arc::new(AtomicBool::new(false));
    let busy = is_busy.clone();
    let near = Impostor::start(move |asked| match busy.load(Ordering::Relaxed) {
        true => problem(asked, 503, "OVERLOADED", Some(60_000)),
        false => Act::Ids,
    })
    .await;
    for site in [&given, &near, &far] {
        site.list_nodes(&[(&near.url(), "east"), (&far.url(), "west")]);
    }
    let client = discovering(&given).zone("east").build().unwrap();
    until(&client, "both join", || client.stats().joined == 2).await;
    let before = (given.asked(), near.asked(), far.asked());
    many(&client, 50).await;
    assert_eq!((given.asked(), far.asked()), (before.0, before.2), "the near one alone");
    assert_eq!(near.asked() - before.1, 50);
    is_busy.store(true, Ordering::Relaxed);
    many(&client, 50).await;
    assert_eq!(near.asked() - before.1, 51, "it said when to come back");
    assert!(far.asked() > before.2 && given.asked() > before.0);
    // The control: without a zone all are asked.
    let anywhere = discovering(&given).build().unwrap();
    let before = far.asked();
    until(&anywhere, "the far one is asked", || far.asked() > before).await;
}
