//! What goes wrong between a client and its servers. Every test has a control: what a client that
//! believes what it is sent would have done.

mod causes;
mod cut;
mod discovered;
mod vectors;

use std::sync::Mutex;
use std::time::Duration;

use frazil_client::{Builder, Client, Error, Id, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::impostor::{Act, FakeRequest, Impostor, answer, body, problem};
use crate::site::{Site, many, repeated};

/// Every `next` asks, and failures are not waited for.
fn direct(urls: impl IntoIterator<Item = String>) -> Builder {
    Client::builder()
        .endpoints(urls)
        .prefetch(0)
        .discover(false)
        .backoff(Duration::from_millis(1)..=Duration::from_millis(5))
}

/// The plainest client there can be: it believes whatever comes.
async fn naive(address: impl tokio::net::ToSocketAddrs) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "POST /v1/ids?count=1 HTTP/1.1\r\nhost: x\r\nfrazil-nonce: n\r\n\
                   accept: application/octet-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let end =
        bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    bytes.split_off(end)
}

/// What it takes a body for, whole or not.
fn believed(body: &[u8]) -> Id {
    let mut word = [0; 8];
    let length = body.len().min(8);
    word[..length].copy_from_slice(&body[..length]);
    Id::from_u64(u64::from_be_bytes(word))
}

/// Keeps the first answer, and gives it to everybody.
fn cache(forgets_nonces: bool) -> impl Fn(&FakeRequest) -> Act {
    let kept = Mutex::new(None::<Vec<u8>>);
    move |asked| {
        let mut kept = kept.lock().unwrap();
        let answer = kept.get_or_insert_with(|| {
            let headers =
                [("content-type", "application/octet-stream"), ("frazil-nonce", asked.nonce())];
            let kept = if forgets_nonces { &headers[..1] } else { &headers[..] };
            answer("200 OK", kept, &body(asked.turn, asked.count()))
        });
        Act::BytesThenClose(answer.clone())
    }
}

#[tokio::test]
async fn an_answer_that_a_cache_kept_is_refused() {
    for forgets_nonces in [false, true] {
        let proxy = Impostor::start(cache(forgets_nonces)).await;
        let client = direct([proxy.url()]).build().unwrap();
        let first = client.next().await;
        assert_eq!(first.is_ok(), !forgets_nonces, "{first:?}");
        for _ in 0..20 {
            let error = client.next().await.unwrap_err();
            let is_so =
                matches!(error, Error::Replayed { has_nonce, .. } if has_nonce != forgets_nonces);
            assert!(is_so && error.is_retryable(), "{error:?}");
            assert!(error.to_string().contains("proxy"), "{error}");
        }
        assert!(client.stats().replays >= 20);
        // The control: who believes it hands the same ID out again and again.
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(believed(&naive(proxy.address()).await));
        }
        assert_eq!(repeated(&ids), 2);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_as_asked_is_never_used() {
    let binary = ("content-type", "application/octet-stream");
    let say = move |asked: &FakeRequest, body: &[u8]| {
        answer("200 OK", &[binary, ("frazil-nonce", asked.nonce())], body)
    };
    type Lie = Box<dyn Fn(&FakeRequest) -> Act + Send + Sync>;
    let lies: Vec<(&str, Lie)> = vec![
        ("short", Box::new(move |a| Act::Bytes(say(a, &body(a.turn, 1)[..7])))),
        ("empty", Box::new(move |a| Act::Bytes(say(a, &[])))),
        ("too many", Box::new(move |a| Act::Bytes(say(a, &body(a.turn, 2))))),
        ("huge", Box::new(move |a| Act::Bytes(say(a, &vec![1; 1 << 20])))),
        ("another layout", Box::new(move |a| Act::Bytes(say(a, &[0xff; 8])))),
        (
            "less than announced",
            Box::new(move |a| {
                let whole = say(a, &body(a.turn, 1));
                Act::BytesThenClose(whole[..whole.len() - 3].to_vec())
            }),
        ),
        (
            "cut without a length",
            Box::new(move |a| {
                let head = format!("HTTP/1.1 200 OK\r\nfrazil-nonce: {}\r\n", a.nonce());
                let head =
                    head + "content-type: application/octet-stream\r\nconnection: close\r\n\r\n";
                Act::BytesThenClose([head.as_bytes(), &body(a.turn, 1)[..5]].concat())
            }),
        ),
        (
            "JSON",
            Box::new(|a| {
                let kind = [("content-type", "application/json"), ("frazil-nonce", a.nonce())];
                Act::Bytes(answer("200 OK", &kind, b"12345678"))
            }),
        ),
        ("no HTTP", Box::new(|_| Act::BytesThenClose(b"-ERR what?\r\n".to_vec()))),
        ("nothing", Box::new(|_| Act::BytesThenClose(Vec::new()))),
        ("a gateway's page", Box::new(|_| Act::Bytes(answer("502 Bad", &[], b"<html>")))),
    ];
    for (name, lie) in lies {
        let server = Impostor::start(lie).await;
        let client = direct([server.url()]).build().unwrap();
        for _ in 0..5 {
            let error = client.next().await.expect_err(name);
            let is_typed = matches!(error, Error::Broken { .. } | Error::Unreachable { .. });
            assert!(is_typed && error.is_retryable(), "{name}: {error:?}");
        }
        let stats = client.stats();
        assert!(stats.attempts <= 2 * stats.requests, "{name}: {stats:?}");
    }
    // The control: the same server, honest.
    let server = Impostor::start(|_| Act::Ids).await;
    let client = direct([server.url()]).build().unwrap();
    assert_eq!(repeated(&many(&client, 5).await), 0);
}

#[tokio::test]
async fn ids_of_an_answer_must_increase() {
    for (ids, is_right) in [([1_u64, 2], true), ([2, 1], false), ([2, 2], false)] {
        let server = Impostor::start(move |asked| {
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()).collect();
            let headers =
                [("content-type", "application/octet-stream"), ("frazil-nonce", asked.nonce())];
            Act::Bytes(answer("200 OK", &headers, &bytes))
        })
        .await;
        let client = direct([server.url()]).build().unwrap();
        assert_eq!(client.batch(2).await.is_ok(), is_right, "{ids:?}");
    }
}

#[tokio::test]
async fn a_server_that_says_when_to_come_back_is_left_alone() {
    let minute = 60_000;
    let busy = Impostor::start(move |a| problem(a, 503, "OVERLOADED", Some(minute))).await;
    let well = Impostor::start(|_| Act::Ids).await;
    let client = direct([busy.url(), well.url()]).build().unwrap();
    assert_eq!(repeated(&many(&client, 50).await), 0);
    assert!(busy.asked() <= 1, "it was asked {} times", busy.asked());
    // Alone it is an error at once, with what it said; and then it is not even asked.
    let client = direct([busy.url()]).build().unwrap();
    let before = busy.asked();
    let error = client.next().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Overloaded));
    assert_eq!(error.retry_after(), Some(Duration::from_millis(minute)));
    let error = client.next().await.unwrap_err();
    assert!(matches!(error, Error::Resting { .. }) && error.is_retryable(), "{error}");
    assert!(error.retry_after().unwrap() > Duration::from_secs(50));
    assert_eq!(busy.asked() - before, 1);
    // The control: one that does not say is asked again.
    let busy = Impostor::start(|a| problem(a, 503, "OVERLOADED", None)).await;
    let client = direct([busy.url()]).build().unwrap();
    client.next().await.unwrap_err();
    assert!(busy.asked() > 1);
}

#[tokio::test]
async fn a_proxy_that_says_when_to_come_back_is_believed_in_seconds_and_dates() {
    let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    for retry_after in ["90", "Sun, 06 Nov 1994 08:51:07 GMT", "Sunday, 06-Nov-94 08:51:07 GMT"] {
        let away = Impostor::start(move |_| {
            Act::Bytes(answer("503 Away", &[date, ("retry-after", retry_after)], b"later"))
        });
        let away = away.await;
        let client = direct([away.url()]).build().unwrap();
        let error = client.next().await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(90)), "{retry_after}: {error}");
        assert_eq!(away.asked(), 1, "{retry_after}");
    }
    // The control: what is no date is no reason to wait.
    let away = Impostor::start(|_| Act::Bytes(answer("503 Away", &[("retry-after", "soon")], b"")));
    let away = away.await;
    let error = direct([away.url()]).build().unwrap().next().await.unwrap_err();
    assert_eq!(error.retry_after(), None, "{error}");
    assert!(away.asked() > 1);
}

#[tokio::test]
async fn what_no_retry_mends_is_asked_once() {
    for (status, reason) in [
        (401, Reason::Unauthenticated),
        (400, Reason::InvalidArgument),
        (500, Reason::Internal),
        (504, Reason::Deadline),
    ] {
        let server = Impostor::start(move |a| problem(a, status, reason.name(), None)).await;
        let other = Impostor::start(move |a| problem(a, status, reason.name(), None)).await;
        let client = direct([server.url(), other.url()]).build().unwrap();
        let error = client.next().await.unwrap_err();
        assert_eq!((error.reason(), error.is_retryable()), (Some(reason), false));
        assert_eq!(server.asked() + other.asked(), 1, "{reason}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_leaves_time_for_another() {
    let stuck = Impostor::start(|_| Act::Silence).await;
    let well = Impostor::start(|_| Act::Ids).await;
    let within = Duration::from_secs(2);
    let builder = direct([stuck.url(), well.url()]).deadline(within);
    let client = builder.build().unwrap();
    let mut ids = Vec::new();
    while stuck.asked() == 0 {
        ids.push(client.next().await.unwrap());
    }
    ids.extend(many(&client, 5).await);
    assert_eq!(repeated(&ids), 0);
    // The control: alone it uses up all the time, and no more.
    let within = Duration::from_millis(300);
    let client = direct([stuck.url()]).deadline(within).build().unwrap();
    let began = tokio::time::Instant::now();
    let error = client.next().await.unwrap_err();
    assert!(matches!(error, Error::Late { .. }) && error.is_retryable(), "{error}");
    assert!(began.elapsed() >= within);
}

#[tokio::test]
async fn when_all_fails_attempts_are_at_most_twice_the_requests() {
    let broken = Impostor::start(|_| Act::BytesThenClose(Vec::new())).await;
    let nobody = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for endpoints in [vec![broken.url()], vec![nobody.clone()], vec![broken.url(), nobody]] {
        let spare = endpoints.len() as u64 - 1;
        let client = direct(endpoints).build().unwrap();
        for _ in 0..200 {
            let error = client.next().await.unwrap_err();
            assert!(error.is_retryable(), "{error}");
        }
        let stats = client.stats();
        assert!(stats.requests >= 200, "{stats:?}");
        assert!(stats.attempts <= 2 * stats.requests + spare, "{stats:?}");
        assert!(stats.attempts > stats.requests, "there were retries: {stats:?}");
    }
}

/// The answer was on its way when its caller had left: it is dropped, and nobody gets it later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_too_late_is_nobodys() {
    let site = Site::start().await;
    let proxy = frazil_rig::Proxy::start(site.addrs.http.unwrap()).unwrap();
    let url = format!("http://{}", proxy.address());
    let client = direct([url]).deadline(Duration::from_millis(300)).connect().await.unwrap();
    let mut ids = many(&client, 5).await;
    let answered = proxy.bytes_answered();
    proxy.hold_replies();
    let error = client.next().await.unwrap_err();
    assert!(matches!(error, Error::Late { .. }), "{error}");
    proxy.wait_for_bytes_answered(answered, Duration::from_secs(10)).unwrap();
    proxy.heal();
    let more = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            if let Ok(id) = client.next().await {
                return id;
            }
        }
    });
    ids.push(more.await.unwrap());
    ids.extend(many(&client, 5).await);
    assert_eq!(repeated(&ids), 0);
    site.stop().await;
}
