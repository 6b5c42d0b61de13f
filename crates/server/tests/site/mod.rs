//! A server in this process, and the plainest clients for it.
#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod secured;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use frazil::coord::FirstUse;
use frazil_server::{Addrs, App, Condition, Config, NodeState, Reloader, RunError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// A server on free ports, with files of its own.
pub(crate) struct Site {
    pub(crate) addrs: Addrs,
    pub(crate) condition: watch::Receiver<Condition>,
    pub(crate) reloader: Reloader,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), RunError>>,
    directory: tempfile::TempDir,
}

/// The settings of tests: free ports, and no time given to balancers.
pub(crate) fn config(store: &str) -> Config {
    let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut config = Config::default();
    config.node = node(store);
    config.name = "tested".to_owned();
    (config.http, config.grpc, config.resp) = (free, free, free);
    config.drain_delay = Duration::ZERO;
    config
}

impl Site {
    /// A server with the settings of tests that is ready.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// The same with some settings changed.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let mut site = Self::begin(change).await;
        site.wait_for(NodeState::Ready).await;
        site
    }

    /// The same without waiting.
    pub(crate) async fn begin(change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(&format!("file:{}", directory.path().display()));
        change(&mut config);
        let app = App::bind(config).await.unwrap();
        let (addrs, condition, reloader) = (app.addrs(), app.condition(), app.reloader());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app.run(async {
            let _ = stopped.await;
        }));
        Self { addrs, condition, reloader, stop: Some(stop), running, directory }
    }

    pub(crate) async fn wait_for(&mut self, state: NodeState) -> Condition {
        self.condition.wait_for(|condition| condition.state == state).await.unwrap().clone()
    }

    /// Asks it to stop, without waiting.
    pub(crate) fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Asks it to stop and waits for that.
    pub(crate) async fn stop(mut self) -> Result<(), RunError> {
        self.ask_to_stop();
        self.ended().await
    }

    /// How it ends.
    pub(crate) async fn ended(self) -> Result<(), RunError> {
        self.running.await.unwrap()
    }

    pub(crate) fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.addrs.http.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        request(self.http(), "GET", path, &[], b"").await
    }

    pub(crate) async fn post(&self, path: &str) -> Reply {
        request(self.http(), "POST", path, &[], b"").await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &str) -> Reply {
        let kind = [("content-type", "application/json")];
        request(self.http(), "POST", path, &kind, body.as_bytes()).await
    }

    /// A metric's value, by its name with labels as the page writes it.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").await.text();
        let line =
            page.lines().find(|line| line.strip_prefix(name).is_some_and(|r| r.starts_with(' ')));
        let line = line.unwrap_or_else(|| panic!("no {name} in:\n{page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// All IDs issued by one protocol without a scope.
    pub(crate) async fn issued(&self, protocol: &str) -> f64 {
        self.metric(&format!("frazil_ids_issued_total{{protocol=\"{protocol}\",scope=\"\"}}")).await
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// The reason of a failure, after a look at what every failure must have.
    pub(crate) fn reason(&self) -> String {
        let problem: frazil_wire::Problem = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem.status, self.status);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.headers["cache-control"], "no-store");
        assert_eq!(problem.retry_after_ms.is_some(), self.headers.contains_key("retry-after"));
        problem.reason
    }
}

/// Sends one request on a connection of its own and reads the answer.
pub(crate) async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        head += &format!("content-length: {}\r\n", body.len());
    }
    send(address, &[format!("{head}\r\n").as_bytes(), body].concat()).await
}

/// Sends bytes on a connection of their own and reads the answer.
pub(crate) async fn send(address: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server may answer before it has read everything.
    let _ = stream.write_all(request).await;
    let mut bytes = Vec::new();
    // It may also close before everything was sent; what was answered is there all the same.
    let _ = stream.read_to_end(&mut bytes).await;
    reply(&bytes)
}

/// Takes an answer apart.
pub(crate) fn reply(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    });
    let headers: BTreeMap<String, String> = headers.collect();
    let body = &bytes[end + 4..];
    let is_chunked = headers.get("transfer-encoding").is_some_and(|how| how == "chunked");
    let body = if is_chunked { joined(body) } else { body.to_vec() };
    Reply { status, headers, body }
}

/// The chunks of a body in one.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|two| two == b"\r\n").expect("a length");
        let length = std::str::from_utf8(&chunks[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 2 + length + 2..];
    }
}

/// A node on a store. A directory is the test's own: its IDs need not run ahead of time at first.
fn node(store: &str) -> frazil::Builder {
    let node = frazil::Node::builder().store(store);
    if store.starts_with("file:") { node.first_use(FirstUse::AtOnce) } else { node }
}
