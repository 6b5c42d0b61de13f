//! Clients that mean harm, or have lost their way: each is got rid of, and others notice nothing.
//!
//! Every check is also made with the limit taken away: there it must find the client still inside.

use std::net::SocketAddr;
use std::time::Duration;

use frazil_rig::Certificates;
use frazil_server::{Limits, TlsFiles};
use frazil_wire::proto::{NextRequest, NextResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::site::secured::Transport;
use crate::site::{Site, reply, send};

/// A limit that is soon reached.
const SOON: Duration = Duration::from_millis(300);
/// One that is not reached in a test.
const NEVER: Duration = Duration::from_secs(3600);
/// How long a client is watched: some limits are looked at every now and then only, and the machine
/// may be busy. Less than any limit that is not set here.
const WATCH: Duration = Duration::from_secs(9);
/// How long one without a limit is watched.
const CONTROL: Duration = Duration::from_secs(1);

async fn with_limits(change: impl Fn(&mut Limits)) -> Site {
    Site::start_with(|config| change(&mut config.limits)).await
}

/// Whether the server ends a connection by itself, after these bytes were sent.
async fn is_dropped(address: Option<SocketAddr>, bytes: &[u8], watch: Duration) -> bool {
    let mut stream = TcpStream::connect(address.unwrap()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    // What it says before does not matter; an error is an end too.
    tokio::time::timeout(watch, stream.read_to_end(&mut Vec::new())).await.is_ok()
}

/// How many connections a listener has.
async fn connections(site: &Site, listener: &str) -> f64 {
    site.metric(&format!("frazil_connections{{listener=\"{listener}\"}}")).await
}

/// Asks until the listener has no more than so many connections, or the time is over.
async fn is_emptied(site: &Site, listener: &str, to: f64, watch: Duration) -> bool {
    let emptied = async {
        while connections(site, listener).await > to {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(watch, emptied).await.is_ok()
}

#[tokio::test]
async fn half_a_request_is_not_waited_for() {
    let half: [(&str, &[u8]); 3] =
        [("http", b"POST /ids HT"), ("resp", b"*2\r\n$4\r\nIN"), ("grpc", b"PRI * HT")];
    let soon = with_limits(|limits| limits.head_timeout = SOON).await;
    let never = with_limits(|limits| limits.head_timeout = NEVER).await;
    for (protocol, bytes) in half {
        let address = |site: &Site| match protocol {
            "http" => site.addrs.http,
            "resp" => site.addrs.resp,
            _ => site.addrs.grpc,
        };
        assert!(is_dropped(address(&soon), bytes, WATCH).await, "{protocol}");
        assert!(!is_dropped(address(&never), bytes, CONTROL).await, "{protocol}");
    }
    // Nor is one that never begins to speak HTTP/2.
    assert!(is_dropped(soon.addrs.grpc, b"", WATCH).await);
    assert!(!is_dropped(never.addrs.grpc, b"", CONTROL).await);
    assert_eq!(soon.post("/ids").await.status, 200);
    soon.stop().await.unwrap();
    never.stop().await.unwrap();
}

/// A client that sends a byte whenever the server might lose patience.
async fn is_trickle_dropped(address: Option<SocketAddr>, bytes: &[u8], watch: Duration) -> bool {
    let mut stream = TcpStream::connect(address.unwrap()).await.unwrap();
    let mut pace = tokio::time::interval(SOON / 3);
    let trickling = async {
        for byte in bytes.iter().cycle() {
            pace.tick().await;
            // A server that has closed resets what comes later.
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            let mut said = [0; 64];
            if matches!(stream.try_read(&mut said), Ok(0)) {
                return;
            }
        }
    };
    tokio::time::timeout(watch, trickling).await.is_ok()
}

#[tokio::test]
async fn a_request_that_trickles_in_is_not_waited_for() {
    let soon = with_limits(|limits| limits.head_timeout = SOON).await;
    let never = with_limits(|limits| limits.head_timeout = NEVER).await;
    for pick in [|s: &Site| s.addrs.http, |s: &Site| s.addrs.resp] {
        // No line of it ever ends.
        assert!(is_trickle_dropped(pick(&soon), b"x", WATCH).await);
        assert!(!is_trickle_dropped(pick(&never), b"x", CONTROL).await);
    }
    soon.stop().await.unwrap();
    never.stop().await.unwrap();
}

#[tokio::test]
async fn idle_connections_end_where_they_have_a_limit() {
    let soon = with_limits(|limits| {
        (limits.idle_timeout, limits.resp_idle_timeout) = (SOON, SOON);
    })
    .await;
    let never = with_limits(|limits| limits.idle_timeout = NEVER).await;
    let request = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
    for bytes in [b"".as_slice(), request] {
        assert!(is_dropped(soon.addrs.http, bytes, WATCH).await);
        assert!(!is_dropped(never.addrs.http, bytes, CONTROL).await);
    }
    assert!(is_dropped(soon.addrs.resp, b"PING\r\n", WATCH).await);
    assert!(!is_dropped(never.addrs.resp, b"PING\r\n", CONTROL).await);
    soon.stop().await.unwrap();
    never.stop().await.unwrap();
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let head = b"POST /v1/ids:decode HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                 content-length: 100\r\nconnection: close\r\n\r\n{";
    let soon = with_limits(|limits| limits.body_timeout = SOON).await;
    let answer = send(soon.http(), head).await;
    assert_eq!((answer.status, answer.reason().as_str()), (400, "INVALID_ARGUMENT"));
    let never = with_limits(|limits| limits.body_timeout = NEVER).await;
    assert!(!is_dropped(never.addrs.http, head, CONTROL).await);
    soon.stop().await.unwrap();
    never.stop().await.unwrap();
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_not_waited_for() {
    let certificates = Certificates::generate().unwrap();
    let secured = |limit: Duration| {
        let tls = TlsFiles::new(
            certificates.server_cert().to_owned(),
            certificates.server_key().to_owned(),
        );
        Site::start_with(move |config| {
            config.tls = Some(tls);
            config.limits.handshake_timeout = limit;
        })
    };
    let (soon, never) = (secured(SOON).await, secured(NEVER).await);
    let first = b"\x16\x03\x01\x02\x00\x01";
    for bytes in [b"".as_slice(), first] {
        for pick in [|s: &Site| s.addrs.http, |s: &Site| s.addrs.grpc, |s: &Site| s.addrs.resp] {
            assert!(is_dropped(pick(&soon), bytes, WATCH).await);
            assert!(!is_dropped(pick(&never), bytes, CONTROL).await);
        }
    }
    soon.stop().await.unwrap();
    never.stop().await.unwrap();
}

#[tokio::test]
async fn a_connection_behind_tls_on_which_nothing_was_said_is_idle() {
    let certificates = Certificates::generate().unwrap();
    let site = Site::start_with(|config| {
        config.tls = Transport::Tls.files(&certificates);
        (config.limits.head_timeout, config.limits.idle_timeout) = (SOON, NEVER);
    })
    .await;
    let connect = || Transport::Tls.connect(site.http(), &certificates, b"http/1.1");
    let mut silent = connect().await;
    let mut half = connect().await;
    half.write_all(b"GET /livez HTTP/1.1\r\nhos").await.unwrap();
    let (mut read, mut other) = (Vec::new(), Vec::new());
    assert!(tokio::time::timeout(WATCH, half.read_to_end(&mut read)).await.is_ok());
    assert!(tokio::time::timeout(CONTROL, silent.read_to_end(&mut other)).await.is_err());
    site.stop().await.unwrap();
}

/// Clients that ask for megabytes and read none of them.
async fn greedy(address: Option<SocketAddr>, request: &[u8], count: usize) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address.unwrap()).await.unwrap();
        stream.write_all(request).await.unwrap();
        all.push(stream);
    }
    all
}

#[tokio::test]
async fn readers_that_do_not_read_are_dropped() {
    // More than the system's buffers hold.
    let http = "POST /v1/ids?count=100000 HTTP/1.1\r\nhost: x\r\n\r\n".repeat(4);
    let resp = "ID.NEXT 100000\r\n".repeat(8);
    let soon = with_limits(|limits| limits.write_timeout = SOON).await;
    let never = with_limits(|limits| {
        (limits.write_timeout, limits.idle_timeout) = (NEVER, NEVER);
    })
    .await;
    let pairs = [(&soon, WATCH, true), (&never, CONTROL, false)];
    for (site, watch, expected) in pairs {
        let readers = greedy(site.addrs.http, http.as_bytes(), 20).await;
        // One is the connection that asks for the metrics.
        assert_eq!(is_emptied(site, "http", 1.0, watch).await, expected);
        drop(readers);
        let readers = greedy(site.addrs.resp, resp.as_bytes(), 20).await;
        assert_eq!(is_emptied(site, "resp", 0.0, watch).await, expected);
        drop(readers);
    }
    soon.stop().await.unwrap();
    never.stop().await.unwrap();
}

/// Calls for a megabyte each, whose answers are not taken though their heads are.
async fn greedy_calls(site: &Site) -> Vec<tonic::Streaming<NextResponse>> {
    let address = format!("http://{}", site.addrs.grpc.unwrap());
    let channel = tonic::transport::Channel::from_shared(address).unwrap();
    let mut all = Vec::new();
    for _ in 0..5 {
        // Whatever the system's buffers hold: no more than this is sent unasked.
        let channel = channel.clone().initial_stream_window_size(1024).connect().await.unwrap();
        let mut grpc = tonic::client::Grpc::new(channel);
        grpc.ready().await.unwrap();
        let request = NextRequest { count: Some(100_000), ..NextRequest::default() };
        let request = tonic::Request::new(tokio_stream::once(request));
        let path = "/frazil.v1.IdService/Next".parse().unwrap();
        let codec = tonic_prost::ProstCodec::default();
        all.push(grpc.streaming(request, path, codec).await.unwrap().into_inner());
    }
    all
}

#[tokio::test]
async fn answers_of_calls_that_are_not_read_end_the_connection() {
    let soon = with_limits(|limits| limits.write_timeout = SOON).await;
    let never = with_limits(|limits| limits.write_timeout = NEVER).await;
    for (site, watch, expected) in [(&soon, WATCH, true), (&never, CONTROL, false)] {
        let calls = greedy_calls(site).await;
        assert_eq!(is_emptied(site, "grpc", 0.0, watch).await, expected);
        drop(calls);
    }
    // Who reads, reads all of it.
    let mut all = greedy_calls(&never).await;
    let answer = all.remove(0).message().await.unwrap().unwrap();
    assert_eq!(answer.ids.len(), 100_000);
    soon.stop().await.unwrap();
    never.stop().await.unwrap();
}

#[tokio::test]
async fn when_all_places_are_taken_probes_are_answered_and_others_are_told() {
    for (most, per_peer) in [(2, 10), (10, 2)] {
        let site = Site::start_with(|config| {
            config.limits.max_connections = most;
            config.limits.max_connections_per_peer = per_peer;
        })
        .await;
        let taken = greedy(site.addrs.http, b"", 2).await;
        let resp = greedy(site.addrs.resp, b"", 2).await;
        let told = |path: &'static str| {
            let address = site.http();
            let request = format!("{path} HTTP/1.1\r\nhost: x\r\n\r\n");
            async move { send(address, request.as_bytes()).await }
        };
        let live = told("GET /livez").await;
        assert_eq!((live.status, &*live.headers["connection"]), (200, "close"));
        assert_eq!(told("GET /readyz").await.status, 200);
        assert_eq!(told("GET /metrics").await.status, 200);
        let ids = told("POST /ids").await;
        assert_eq!((ids.status, ids.reason().as_str()), (503, "OVERLOADED"));
        let mut late = TcpStream::connect(site.addrs.resp.unwrap()).await.unwrap();
        let mut why = String::new();
        late.read_to_string(&mut why).await.unwrap();
        assert_eq!(why, "-ERR max number of clients reached\r\n");
        // Who goes makes room.
        drop((taken, resp));
        assert!(is_emptied(&site, "http", 1.0, WATCH).await);
        assert_eq!(told_ids(&site).await, 200);
        site.stop().await.unwrap();
    }
}

async fn told_ids(site: &Site) -> u16 {
    site.post("/ids").await.status
}

#[tokio::test]
async fn heads_larger_than_the_limits_are_refused() {
    let site = Site::start().await;
    let huge = "x".repeat(1 << 20);
    let many: String = (0..200).map(|n| format!("h{n}: 1\r\n")).collect();
    for (what, head) in [
        ("one header", format!("GET /livez HTTP/1.1\r\nhost: x\r\nbig: {huge}\r\n\r\n")),
        ("many headers", format!("GET /livez HTTP/1.1\r\nhost: x\r\n{many}\r\n")),
        ("a path", format!("GET /livez?{huge} HTTP/1.1\r\nhost: x\r\n\r\n")),
    ] {
        let mut stream = TcpStream::connect(site.http()).await.unwrap();
        // It may be refused before it was sent.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        // If the end came as a reset, the answer may be lost with it.
        if !answer.is_empty() {
            let reply = reply(&answer);
            assert_eq!((reply.status, reply.reason().as_str()), (431, "HEAD_TOO_LARGE"), "{what}");
        }
    }
    // These are read as a whole before they are refused, so that the answer arrives; here after that to
    // another request on the same connection.
    for (what, bytes, reason) in [
        ("many headers", format!("GET /livez HTTP/1.1\r\nhost: x\r\n{many}\r\n"), "HEAD_TOO_LARGE"),
        ("no HTTP", "nothing of the kind\r\n\r\n".to_owned(), "INVALID_ARGUMENT"),
    ] {
        let mut stream = TcpStream::connect(site.http()).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut first = vec![0; 4096];
        let read = stream.read(&mut first).await.unwrap();
        assert_eq!(reply(&first[..read]).status, 200, "{what}");
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(reply(&answer).reason(), reason, "{what}");
    }
    assert_eq!(site.post("/ids").await.status, 200);
    site.stop().await.unwrap();
}

/// The beginning of an HTTP/2 connection: the preface and empty settings.
fn greeting() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// `POST http://x/` without a name, a date or anything else, as HPACK writes it.
const REQUEST: [u8; 7] = [0x83, 0x86, 0x84, 0x41, 0x01, b'x', 0x5f];

/// Sends frames until the server has had enough. Gives the kinds of frames it sent, and whether it
/// ended the connection.
async fn pour(site: &Site, bytes: Vec<u8>) -> (Vec<u8>, bool) {
    let stream = TcpStream::connect(site.addrs.grpc.unwrap()).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let writing = tokio::spawn(async move {
        let _ = to.write_all(&bytes).await;
        to
    });
    let mut said = Vec::new();
    let is_ended = tokio::time::timeout(WATCH, from.read_to_end(&mut said)).await.is_ok();
    writing.abort();
    let mut kinds = Vec::new();
    let mut rest = said.as_slice();
    while rest.len() >= 9 {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        kinds.push(rest[3]);
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    (kinds, is_ended)
}

const GO_AWAY: u8 = 7;

#[tokio::test]
async fn a_client_that_resets_what_it_asks_for_is_sent_away() {
    let site = Site::start().await;
    let healthy = IdClient::new(&site).await;
    let mut bytes = greeting();
    for stream in (1..20_000).step_by(2) {
        // END_STREAM and END_HEADERS, then a reset because of nothing.
        bytes.extend(frame(1, 0x5, stream, &REQUEST[..6]));
        bytes.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
    }
    let (kinds, is_ended) = pour(&site, bytes.clone()).await;
    assert!(is_ended && kinds.contains(&GO_AWAY), "{is_ended}, frames {kinds:?}");
    // A client that waits for its answers may ask as often.
    healthy.ask(500).await;
    site.stop().await.unwrap();
    let unlimited = with_limits(|limits| limits.max_resets = 1 << 20).await;
    let (kinds, is_ended) = pour(&unlimited, bytes).await;
    assert!(!is_ended && !kinds.contains(&GO_AWAY), "{is_ended}, frames {kinds:?}");
    unlimited.stop().await.unwrap();
}

#[tokio::test]
async fn headers_that_never_end_are_not_collected() {
    let site = Site::start().await;
    let healthy = IdClient::new(&site).await;
    let mut bytes = greeting();
    bytes.extend(frame(1, 0x1, 1, &REQUEST[..6]));
    // 16 MiB in pieces: each a literal header of its own, never the last.
    let mut header = vec![0x00, 0x01, b'h', 0x7f, 0x80, 0x7d];
    header.extend(std::iter::repeat_n(b'v', 127 + 16_000));
    for _ in 0..1000 {
        bytes.extend(frame(9, 0, 1, &header));
    }
    let (_, is_ended) = pour(&site, bytes).await;
    assert!(is_ended, "sixteen megabytes of headers are listened to");
    healthy.ask(100).await;
    site.stop().await.unwrap();
}

/// A client that does what it should.
struct IdClient(frazil_wire::proto::id_service_client::IdServiceClient<tonic::transport::Channel>);

impl IdClient {
    async fn new(site: &Site) -> Self {
        let address = format!("http://{}", site.addrs.grpc.unwrap());
        let channel = tonic::transport::Channel::from_shared(address).unwrap();
        let channel = channel.connect().await.unwrap();
        Self(frazil_wire::proto::id_service_client::IdServiceClient::new(channel))
    }

    async fn ask(mut self, times: usize) {
        for _ in 0..times {
            let request = frazil_wire::proto::NextRequest::default();
            assert_eq!(self.0.next(request).await.unwrap().into_inner().ids.len(), 1);
        }
    }
}
