//! Clients without a key: they are told so before anything is read of them, and do not stay.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use frazil_server::keys::Role;
use frazil_wire::proto::NextRequest;
use frazil_wire::proto::id_service_client::IdServiceClient;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_stream::StreamExt;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt;

use crate::site::secured::Keys;
use crate::site::{Reply, Site, request, send};

/// A limit that is soon reached.
const SOON: Duration = Duration::from_millis(300);
/// One that is not reached in a test.
const NEVER: Duration = Duration::from_secs(3600);
/// How long a client is watched that should be gone.
const WATCH: Duration = Duration::from_secs(9);
/// How long one is watched that may stay.
const CONTROL: Duration = Duration::from_secs(1);

/// A server with keys that waits so long for one.
async fn keyed(keys: &Keys, auth_timeout: Duration) -> Site {
    Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.open_metrics = true;
        config.limits.auth_timeout = auth_timeout;
    })
    .await
}

/// Whether the server ends the connection by itself.
async fn is_ended(stream: &mut TcpStream, watch: Duration) -> bool {
    tokio::time::timeout(watch, stream.read_to_end(&mut Vec::new())).await.is_ok()
}

/// A connection on which this was said.
async fn said(address: Option<std::net::SocketAddr>, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address.unwrap()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// The beginning of an HTTP/2 connection: the preface and empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn who_shows_no_key_does_not_stay() {
    let mut keys = Keys::new();
    keys.add("app", Role::Ids);
    let (soon, never) = (keyed(&keys, SOON).await, keyed(&keys, NEVER).await);
    let open = Site::start_with(|config| config.limits.auth_timeout = SOON).await;
    for bytes in [b"".as_slice(), b"PING\r\n", b"AUTH wrong\r\n", b"RESET\r\n"] {
        assert!(is_ended(&mut said(soon.addrs.resp, bytes).await, WATCH).await, "{bytes:?}");
    }
    assert!(!is_ended(&mut said(never.addrs.resp, b"PING\r\n").await, CONTROL).await);
    assert!(is_ended(&mut said(soon.addrs.grpc, GREETING).await, WATCH).await);
    assert!(!is_ended(&mut said(never.addrs.grpc, GREETING).await, CONTROL).await);
    // Where nobody needs a key, nobody is waited for.
    assert!(!is_ended(&mut said(open.addrs.resp, b"PING\r\n").await, CONTROL).await);
    assert!(!is_ended(&mut said(open.addrs.grpc, GREETING).await, CONTROL).await);
    for site in [soon, never, open] {
        site.stop().await.unwrap();
    }
}

#[tokio::test]
async fn who_asks_over_http_without_a_key_is_answered_once() {
    let mut keys = Keys::new();
    let key = keys.add("app", Role::Ids);
    let (keyed, open) = (keyed(&keys, NEVER).await, Site::start().await);
    let bytes = |request: &str| format!("{request}\r\nhost: x\r\n\r\n").into_bytes();
    let probe = bytes("GET /livez HTTP/1.1");
    let wrong = bytes("POST /ids HTTP/1.1\r\nauthorization: Bearer wrong");
    let right = bytes(&format!("POST /ids HTTP/1.1\r\nauthorization: Bearer {key}"));
    for asked in [&probe, &bytes("POST /ids HTTP/1.1"), &wrong, &[&*right, &*wrong].concat()] {
        let mut stream = said(Some(keyed.http()), asked).await;
        assert!(is_ended(&mut stream, WATCH).await, "{}", String::from_utf8_lossy(asked));
    }
    for asked in [&right, &[&*right, &*probe].concat()] {
        assert!(!is_ended(&mut said(Some(keyed.http()), asked).await, CONTROL).await);
    }
    // Where nobody needs a key, nobody is sent away.
    assert!(!is_ended(&mut said(Some(open.http()), &probe).await, CONTROL).await);
    for site in [keyed, open] {
        site.stop().await.unwrap();
    }
}

/// A frame of HTTP/2: of a kind, with flags, on a stream, with a payload.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

/// The head of a call of Next without a key: names by their place in the table of HPACK.
fn head() -> Vec<u8> {
    let mut head = vec![0x83, 0x86];
    for (name, value) in [
        (&[0x04][..], "/frazil.v1.IdService/Next"),
        (&[0x01], "x"),
        (&[0x0f, 0x10], "application/grpc"),
    ] {
        head.extend(name);
        head.push(u8::try_from(value.len()).unwrap());
        head.extend(value.as_bytes());
    }
    head
}

/// Kinds of frames, and two flags.
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// The next frame, with its head.
async fn next_frame(stream: &mut TcpStream) -> Vec<u8> {
    let mut frame = vec![0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    frame.resize(9 + usize::from(u16::from_be_bytes([frame[1], frame[2]])), 0);
    stream.read_exact(&mut frame[9..]).await.unwrap();
    frame
}

#[tokio::test]
async fn a_client_that_waits_for_settings_gets_them_once() {
    let mut keys = Keys::new();
    keys.add("app", Role::Ids);
    let (site, open) = (keyed(&keys, NEVER).await, Site::start().await);
    // The library alone writes these.
    let expected = next_frame(&mut said(open.addrs.grpc, GREETING).await).await;
    let mut stream = said(site.addrs.grpc, GREETING).await;
    assert_eq!(next_frame(&mut stream).await, expected);
    let head = head();
    let (first, rest) = head.split_at(10);
    stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await.unwrap();
    stream.write_all(&frame(HEADERS, 0, 1, first)).await.unwrap();
    stream.write_all(&frame(9, END_HEADERS, 1, rest)).await.unwrap();
    loop {
        let frame = next_frame(&mut stream).await;
        assert!(frame[3] != SETTINGS || frame[4] == ACK, "settings again: {frame:?}");
        if frame[3] == HEADERS {
            break;
        }
    }
    site.stop().await.unwrap();
    open.stop().await.unwrap();
}

#[tokio::test]
async fn of_many_who_called_without_a_key_few_stay() {
    let mut keys = Keys::new();
    let key = keys.add("app", Role::Ids);
    // One too many waits for half a second of these.
    let site = keyed(&keys, Duration::from_secs(20)).await;
    let mut client = IdServiceClient::new(channel(&site).await);
    let mut ask = async || {
        let mut call = tonic::Request::new(NextRequest::default());
        call.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        client.next(call).await.unwrap().into_inner().ids.len()
    };
    assert_eq!(ask().await, 1);
    let half = [GREETING, &frame(HEADERS, END_HEADERS, 1, &head())].concat();
    let mut crowd = Vec::new();
    for _ in 0..300 {
        crowd.push(said(site.addrs.grpc, &half).await);
    }
    // The first are gone, the last and who has a key are not.
    assert!(is_ended(&mut crowd[0], WATCH).await);
    assert!(!is_ended(crowd.last_mut().unwrap(), CONTROL).await);
    let few = async {
        loop {
            let connections = site.metric("frazil_connections{listener=\"grpc\"}").await;
            assert!(connections >= 100.0, "{connections}");
            if connections < 150.0 {
                return;
            }
        }
    };
    tokio::time::timeout(WATCH, few).await.expect("few stay");
    assert_eq!(ask().await, 1);
    site.stop().await.unwrap();
}

async fn channel(site: &Site) -> Channel {
    let address = format!("http://{}", site.addrs.grpc.unwrap());
    Channel::from_shared(address).unwrap().connect().await.unwrap()
}

#[tokio::test]
async fn who_showed_a_key_stays() {
    let mut keys = Keys::new();
    let key = keys.add("app", Role::Ids);
    let site = keyed(&keys, SOON).await;
    let mut resp = said(site.addrs.resp, format!("AUTH {key}\r\n").as_bytes()).await;
    let mut ok = [0; 5];
    resp.read_exact(&mut ok).await.unwrap();
    assert_eq!(&ok, b"+OK\r\n");
    let mut client = IdServiceClient::new(channel(&site).await);
    let mut call = tonic::Request::new(NextRequest::default());
    call.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    assert_eq!(client.next(call).await.unwrap().into_inner().ids.len(), 1);
    assert!(!is_ended(&mut resp, CONTROL).await);
    let connections = site.metric("frazil_connections{listener=\"grpc\"}").await;
    assert!((connections - 1.0).abs() < f64::EPSILON, "{connections}");
    drop(client);
    site.stop().await.unwrap();
}

/// A call whose message never ends. Gives the code of the answer.
async fn half_a_call(site: &Site, call: &str, watch: Duration) -> Option<String> {
    half_a_call_with(site, call, None, watch).await
}

/// The same with a key, if there is one.
async fn half_a_call_with(
    site: &Site,
    call: &str,
    key: Option<&str>,
    watch: Duration,
) -> Option<String> {
    // Says that it has a hundred bytes, and has one.
    let frame = Frame::data(Bytes::from_static(&[0, 0, 0, 0, 100, 1]));
    let frames = tokio_stream::once(Ok::<_, Infallible>(frame)).chain(tokio_stream::pending());
    let mut request = hyper::Request::post(format!("http://{}/{call}", site.addrs.grpc.unwrap()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(StreamBody::new(frames)))
        .unwrap();
    if let Some(key) = key {
        let shown = format!("Bearer {key}").parse().unwrap();
        request.headers_mut().insert("authorization", shown);
    }
    let answered = tokio::time::timeout(watch, channel(site).await.oneshot(request)).await.ok()?;
    let answer = answered.unwrap();
    Some(answer.headers()["grpc-status"].to_str().unwrap().to_owned())
}

/// All calls that read a message.
const CALLS: [&str; 6] = [
    "frazil.v1.IdService/Next",
    "frazil.v1.IdService/Stream",
    "frazil.v1.IdService/Decode",
    "frazil.v1.IdService/Info",
    "grpc.health.v1.Health/Check",
    "grpc.health.v1.Health/Watch",
];

#[tokio::test]
async fn a_call_without_a_key_is_refused_before_its_message() {
    let mut keys = Keys::new();
    keys.add("app", Role::Ids);
    let site = keyed(&keys, NEVER).await;
    for call in &CALLS[..4] {
        assert_eq!(half_a_call(&site, call, WATCH).await.as_deref(), Some("16"), "{call}");
    }
    let refused = "frazil_requests_total{protocol=\"grpc\",method=\"next\",\
                   code=\"UNAUTHENTICATED\"}";
    assert!((site.metric(refused).await - 1.0).abs() < f64::EPSILON);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_message_that_does_not_come_is_not_waited_for() {
    let with = |limit| Site::start_with(move |config| config.limits.body_timeout = limit);
    let (soon, never) = (with(SOON).await, with(NEVER).await);
    for call in CALLS {
        assert_eq!(half_a_call(&soon, call, WATCH).await.as_deref(), Some("4"), "{call}");
        assert_eq!(half_a_call(&never, call, CONTROL).await, None, "{call}");
    }
    soon.stop().await.unwrap();
    never.stop().await.unwrap();
}

#[tokio::test]
async fn calls_count_as_in_flight_from_their_head_on() {
    let site = Site::start_with(|config| config.limits.max_in_flight = 2).await;
    let half = ["Next", "Decode"].map(|name| format!("frazil.v1.IdService/{name}"));
    let hold = half.iter().map(|call| half_a_call(&site, call, NEVER));
    let [one, other] = hold.collect::<Vec<_>>().try_into().ok().unwrap();
    let counted = async {
        while site.metric("frazil_requests_in_flight").await < 2.0 {
            tokio::task::yield_now().await;
        }
        half_a_call(&site, "frazil.v1.IdService/Info", WATCH).await
    };
    let third = tokio::select! {
        third = tokio::time::timeout(WATCH, counted) => third.expect("they are counted"),
        _ = async { tokio::join!(one, other) } => panic!("they are not finished"),
    };
    assert_eq!(third.as_deref(), Some("14"), "OVERLOADED");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_key_that_fills_all_places_leaves_some_to_others() {
    let mut keys = Keys::new();
    let (flood, other) = (keys.add("flood", Role::Ids), keys.add("other", Role::Ids));
    let site = Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.open_metrics = true;
        config.limits.max_in_flight = 2;
    })
    .await;
    let call = "frazil.v1.IdService/Next";
    let hold = || half_a_call_with(&site, call, Some(&flood), NEVER);
    let asked = async {
        while site.metric("frazil_requests_in_flight").await < 2.0 {
            tokio::task::yield_now().await;
        }
        let third = half_a_call_with(&site, call, Some(&flood), WATCH).await;
        let mut client = IdServiceClient::new(channel(&site).await);
        let mut call = tonic::Request::new(NextRequest::default());
        call.metadata_mut().insert("authorization", format!("Bearer {other}").parse().unwrap());
        let grpc = client.next(call).await.map(drop);
        let shown = format!("authorization: Bearer {other}\r\n");
        (third, grpc, ask(&site, &site.http().to_string(), &shown).await.status)
    };
    let (third, grpc, http) = tokio::select! {
        asked = tokio::time::timeout(WATCH, asked) => asked.expect("they are counted"),
        _ = async { tokio::join!(hold(), hold()) } => panic!("they are not finished"),
    };
    assert_eq!(third.as_deref(), Some("14"), "OVERLOADED");
    assert!(grpc.is_ok(), "{grpc:?}");
    assert_eq!(http, 200);
    site.stop().await.unwrap();
}

/// What a RESP server says to bytes before it closes, or until it has said enough.
async fn told(site: &Site, bytes: &[u8]) -> String {
    let mut stream = said(site.addrs.resp, bytes).await;
    let mut answers = Vec::new();
    let reading = stream.read_to_end(&mut answers);
    tokio::time::timeout(WATCH, reading).await.expect("the connection ends").unwrap();
    String::from_utf8(answers).unwrap()
}

fn command(words: &[&str]) -> String {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), words.collect::<String>())
}

#[tokio::test]
async fn before_a_key_commands_are_short() {
    let mut keys = Keys::new();
    let key = keys.add("app", Role::Ids);
    let site = keyed(&keys, NEVER).await;
    let long = command(&["ECHO", &"x".repeat(5_000)]);
    let many = command(&["x"; 17]);
    for bytes in [&long, &many] {
        let answer = told(&site, bytes.as_bytes()).await;
        assert!(answer.starts_with("-ERR Protocol error"), "{answer}");
    }
    let auth = command(&["AUTH", &key]);
    let answer = told(&site, format!("{auth}{long}{many}QUIT\r\n").as_bytes()).await;
    assert!(answer.starts_with("+OK\r\n$5000\r\nxxx"), "{answer}");
    assert!(answer.ends_with("+OK\r\n"), "{answer}");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_browser_says_ends_the_connection_with_and_without_keys() {
    let mut keys = Keys::new();
    let key = keys.add("app", Role::Ids);
    let (open, keyed) = (Site::start().await, keyed(&keys, NEVER).await);
    let body = format!("AUTH {key}\r\nID.NEXT 1\r\n");
    for site in [&open, &keyed] {
        for first in ["POST / HTTP/1.1", "post /", "Host: 127.0.0.1:7782", "HOST: x"] {
            let answer = told(site, format!("{first}\r\n{body}").as_bytes()).await;
            assert_eq!(answer, "", "{first}");
        }
    }
    open.stop().await.unwrap();
    keyed.stop().await.unwrap();
}

/// One ID, asked for with these headers.
async fn ask(site: &Site, host: &str, more: &str) -> Reply {
    let head = format!("POST /v1/ids HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n");
    send(site.http(), head.as_bytes()).await
}

#[tokio::test]
async fn without_keys_pages_of_others_get_nothing() {
    let site = Site::start().await;
    let own = site.http().to_string();
    let own_origin = format!("origin: http://{own}\r\nsec-fetch-site: same-origin\r\n");
    for (host, more) in [
        (own.as_str(), "origin: https://evil.example\r\n"),
        (own.as_str(), "origin: null\r\n"),
        (own.as_str(), "sec-fetch-site: cross-site\r\n"),
        (own.as_str(), "sec-fetch-site: same-site\r\n"),
        // A name that was made to lead here.
        ("evil.example", "origin: http://evil.example\r\nsec-fetch-site: same-origin\r\n"),
        ("evil.example", "sec-fetch-site: same-origin\r\n"),
    ] {
        let answer = ask(&site, host, more).await;
        assert_eq!((answer.status, answer.reason().as_str()), (403, "FORBIDDEN"), "{host} {more}");
        let head = [("origin", "https://evil.example"), ("content-type", "application/json")];
        let body = br#"{"ids":["1"]}"#;
        let decoded = request(site.http(), "POST", "/v1/ids:decode", &head, body).await;
        assert_eq!(decoded.status, 403);
    }
    for (host, more) in [
        (own.as_str(), own_origin.as_str()),
        (own.as_str(), "sec-fetch-site: none\r\n"),
        (own.as_str(), ""),
        // No browser, under whatever name it reaches the server.
        ("ids.example.net", ""),
        ("ids.example.net:7780", "user-agent: curl/8\r\n"),
    ] {
        assert_eq!(ask(&site, host, more).await.status, 200, "{host} {more}");
    }
    site.stop().await.unwrap();
    // A key says who asks: pages cannot have it by themselves.
    let mut keys = Keys::new();
    let key = keys.add("app", Role::Ids);
    let keyed = keyed(&keys, NEVER).await;
    let shown = format!("authorization: Bearer {key}\r\norigin: https://app.example\r\n");
    assert_eq!(ask(&keyed, "ids.example.net", &shown).await.status, 200);
    keyed.stop().await.unwrap();
}

#[tokio::test]
async fn readiness_has_its_details_for_those_who_may_read() {
    let mut keys = Keys::new();
    let (app, reader) = (keys.add("app", Role::Ids), keys.add("reader", Role::Read));
    let site = keyed(&keys, NEVER).await;
    let verbose = async |key: Option<&str>| {
        let shown = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<_> = shown.iter().map(|shown| ("authorization", &**shown)).collect();
        request(site.http(), "GET", "/readyz?verbose", &headers, b"").await.text()
    };
    for key in [None, Some(app.as_str()), Some("wrong")] {
        let text = verbose(key).await;
        assert!(text.ends_with("\nready\n"), "{text}");
        assert!(text.contains("[+] store: answers\n") && text.contains("[+] lane: "), "{text}");
        for line in text.lines().filter(|line| line.starts_with('[')) {
            let (_, says) = line.split_once(": ").unwrap();
            assert!(says.split(' ').count() <= 3 && !says.contains(['/', '.']), "{line}");
        }
    }
    let details = verbose(Some(&reader)).await;
    assert!(details.contains("[+] lane: worker ") && details.contains("s left"), "{details}");
    site.stop().await.unwrap();
    // A store that cannot be opened is told by its name to those who may read alone.
    let nowhere = "redis://127.0.0.1:1/";
    let site = Site::begin(|config| {
        config.keys = Some(keys.path().into());
        config.node = frazil::Node::builder().store(nowhere);
    })
    .await;
    let verbose = async |headers: &[(&str, &str)]| {
        request(site.http(), "GET", "/readyz?verbose", headers, b"").await.text()
    };
    let shown = format!("Bearer {reader}");
    let shown = [("authorization", shown.as_str())];
    while !verbose(&shown).await.contains("127.0.0.1:1") {
        tokio::task::yield_now().await;
    }
    let text = verbose(&[]).await;
    assert!(!text.contains("127.0.0.1") && text.ends_with("starting\n"), "{text}");
    site.stop().await.unwrap();
}
