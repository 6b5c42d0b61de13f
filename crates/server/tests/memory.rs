//! How much a server holds for clients that ask and neither finish nor read.
//!
//! The server is a process of its own, so that what is measured is its memory and no client's.

mod site;

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use frazil::coord::internal::time::boot_time;
use frazil_rig::Certificates;
use frazil_server::TlsFiles;
use frazil_server::keys::Role;
use http_body_util::StreamBody;
use hyper::Request;
use hyper::body::Frame;
use site::secured::{Keys, Transport};
use site::{Site, request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt;

/// Where the process of a server finds its file of keys.
const KEYS: &str = "FRAZIL_TEST_KEYS";
/// Where it finds its certificate and the key of that, if it is to speak TLS.
const TLS: [&str; 2] = ["FRAZIL_TEST_TLS_CERT", "FRAZIL_TEST_TLS_KEY"];
/// How long clients may take to send as much as the server lets them.
const WATCH: Duration = Duration::from_secs(5);
/// How long a client may take whose silence is what is measured.
const LONG: Duration = Duration::from_secs(120);
const MEGABYTE: u64 = 1 << 20;

/// A server in a process of its own.
struct Apart {
    process: Child,
    http: SocketAddr,
    grpc: SocketAddr,
}

impl Apart {
    fn start(keys: Option<&Keys>) -> Self {
        Self::start_with(keys, None)
    }

    /// Runs `serve` of this file.
    fn start_with(keys: Option<&Keys>, certificates: Option<&Certificates>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "serve", "--ignored", "--nocapture"]);
        if let Some(keys) = keys {
            command.env(KEYS, keys.path());
        }
        if let Some(certificates) = certificates {
            command.env(TLS[0], certificates.server_cert());
            command.env(TLS[1], certificates.server_key());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let addresses = lines.find_map(|line| {
            let line = line.unwrap();
            line.split_once("serves at ").map(|(_, addresses)| addresses.to_owned())
        });
        let addresses = addresses.expect("the server says where it is");
        let (http, grpc) = addresses.split_once(' ').unwrap();
        Self { process, http: http.parse().unwrap(), grpc: grpc.parse().unwrap() }
    }

    /// Bytes by which its memory grew at most since `before`.
    fn grown(&self, before: u64) -> u64 {
        self.memory("VmHWM:").saturating_sub(before)
    }

    /// Bytes that it holds now.
    fn held(&self) -> u64 {
        self.memory("VmRSS:")
    }

    fn memory(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the server of the other tests: they start it in a process of its own"]
async fn serve() {
    let site = Site::start_with(|config| {
        config.keys = std::env::var_os(KEYS).map(|path| PathBuf::from(path).into());
        let [cert, key] = TLS.map(|name| std::env::var_os(name).map(PathBuf::from));
        config.tls = cert.zip(key).map(|(cert, key)| TlsFiles::new(cert, key));
        // A busy machine is slow to send and to read, too.
        config.limits.body_timeout = LONG;
        config.limits.write_timeout = LONG;
    })
    .await;
    println!("serves at {} {}", site.http(), site.addrs.grpc.unwrap());
    // Until the test that started it is done.
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    site.stop().await.unwrap();
}

/// A message that says it has so many bytes, and never has the last one.
fn endless(bytes: usize) -> Body {
    static NOTHING: [u8; 1 << 20] = [0; 1 << 20];
    let length = u32::try_from(bytes).unwrap().to_be_bytes();
    let prefix = [&[0], length.as_slice()].concat();
    let frames = [Bytes::from(prefix), Bytes::from_static(&NOTHING[..bytes - 1])];
    let frames = frames.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    Body::new(StreamBody::new(tokio_stream::iter(frames).chain(tokio_stream::pending())))
}

async fn channel(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// Eight connections with a hundred unfinished calls each. Gives how many were answered meanwhile.
async fn crowd(address: SocketAddr, call: &str, bytes: usize) -> usize {
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let channel = channel(address).await;
        for _ in 0..100 {
            let request = Request::post(format!("http://{address}/{call}"))
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(endless(bytes))
                .unwrap();
            calls.spawn(channel.clone().oneshot(request));
        }
    }
    let mut answered = 0;
    let all = async {
        while calls.join_next().await.is_some() {
            answered += 1;
        }
    };
    let _ = tokio::time::timeout(WATCH, all).await;
    answered
}

#[tokio::test]
async fn unfinished_calls_hold_little() {
    let mut keys = Keys::new();
    keys.add("app", Role::Ids);
    let (next, decode) = ("frazil.v1.IdService/Next", "frazil.v1.IdService/Decode");
    let health = "grpc.health.v1.Health/Check";
    for (keys, call, bytes) in [
        (Some(&keys), next, 1_000_000),
        (Some(&keys), decode, 1_000_000),
        (Some(&keys), health, 1_000_000),
        (None, next, 1_000_000),
        (None, decode, 1_000_000),
        // As much as these calls may have.
        (None, next, 1_000),
        (None, decode, 100_000),
        (None, health, 1_000),
    ] {
        let site = Apart::start(keys);
        // What the first connection and call need once is not theirs.
        crowd(site.grpc, "frazil.v1.IdService/Nothing", 10).await;
        let before = site.held();
        let answered = crowd(site.grpc, call, bytes).await;
        let grown = site.grown(before);
        assert!(
            grown < 20 * MEGABYTE,
            "{call} with {bytes} bytes, keys {}: {grown} bytes, {answered} answered",
            keys.is_some()
        );
        if keys.is_some() && call != health {
            assert_eq!(answered, 800, "{call}: who has no key is told at once");
        }
    }
}

/// Clients behind TLS of whom each sends half a request.
const HALVES: usize = 2000;

#[tokio::test]
async fn half_requests_behind_tls_hold_little() {
    let certificates = Certificates::generate().unwrap();
    let mut keys = Keys::new();
    keys.add("app", Role::Ids);
    let half = "POST /ids HTTP/1.1\r\nhos";
    let halves = [
        half.to_owned(),
        format!("POST /ids HTTP/1.1\r\na: {}", "b".repeat(7000)),
        format!("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n{half}"),
    ];
    for half in &halves {
        let site = Apart::start_with(Some(&keys), Some(&certificates));
        let client = || async {
            let mut line = Transport::Tls.connect(site.http, &certificates, b"http/1.1").await;
            // A server that has closed already does well.
            let _ = line.write_all(half.as_bytes()).await;
            line
        };
        // What the first ones need once is not theirs.
        for _ in 0..10 {
            client().await;
        }
        let before = site.held();
        let mut crowd = Vec::new();
        for _ in 0..HALVES {
            crowd.push(client().await);
        }
        let grown = site.grown(before);
        assert!(grown < 30 * MEGABYTE, "{}: {grown} bytes", &half[..20]);
    }
}

/// Asks for the parts of an ID, many times, and reads nothing.
async fn decoder(address: SocketAddr, id: &str, count: usize) -> TcpStream {
    let body = format!(r#"{{"ids":[{}{id}]}}"#, format!("{id},").repeat(count - 1));
    let head = format!(
        "POST /v1/ids:decode HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.unwrap();
    stream
}

#[tokio::test]
async fn decoders_that_do_not_read_hold_little_and_nobody_up() {
    // As short as IDs can be, and as they are: 2.2 MB of them.
    for id in ["0", "\"1234567890123456789\""] {
        decoders_that_do_not_read(id).await;
    }
}

async fn decoders_that_do_not_read(id: &str) {
    let site = Apart::start(None);
    let before = site.held();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(decoder(site.http, id, 100_000).await);
    }
    let mut times = Vec::new();
    for _ in 0..300 {
        let began = boot_time();
        assert_eq!(request(site.http, "POST", "/ids", &[], b"").await.status, 200);
        times.push(boot_time() - began);
    }
    times.sort();
    let (grown, median) = (site.grown(before), times[times.len() / 2]);
    assert!(grown < 60 * MEGABYTE, "{id}: {grown} bytes");
    // Without optimisation, and beside other tests: it is 5 ms that is promised of a release.
    assert!(median < Duration::from_millis(50), "{id}: {median:?}");
    // They do get an answer.
    for mut stream in silent {
        let mut first = [0; 15];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK", "{id}");
    }
}
