//! A server for the tests of programs that use a client: it speaks HTTP, gives IDs that nobody else
//! has in its life, and fails as it is told.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use frazil_client::testing::{FakeAnswer, FakeServer};
//! use frazil_client::{Client, Reason};
//!
//! let server = FakeServer::start().await?;
//! let ids = Client::builder().endpoint(server.url()).prefetch(0).build()?;
//! assert!(ids.next().await? < ids.next().await?);
//!
//! let full = FakeServer::start_with(|_| FakeAnswer::refusal(Reason::QuotaExceeded)).await?;
//! let ids = Client::builder().endpoint(full.url()).prefetch(0).build()?;
//! assert_eq!(ids.next().await.unwrap_err().reason(), Some(Reason::QuotaExceeded));
//! # Ok(())
//! # }
//! ```

mod answer;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use frazil_id::Layout;
use frazil_wire::LayoutInfo;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub use self::answer::{FakeAnswer, http_answer};

/// The longest head of a request that it reads.
const HEAD_MAX: usize = 64 * 1024;

/// A server on the loopback address, until it is dropped. Without a rule of its own it gives the IDs
/// that it is asked for.
#[derive(Debug)]
pub struct FakeServer {
    address: SocketAddr,
    asked: Arc<AtomicU64>,
    cluster: Cluster,
    running: JoinHandle<()>,
}

/// What it says of its cluster, in JSON; `None`: that it knows of none.
type Cluster = Arc<Mutex<Option<String>>>;

/// One request for IDs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FakeRequest {
    /// The first line and the headers, as they came.
    pub head: String,
    /// How many requests for IDs came before it.
    pub turn: u64,
}

impl FakeServer {
    /// Starts a server that gives IDs.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(|_| FakeAnswer::Ids).await
    }

    /// Starts a server that answers requests for IDs by a rule.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn start_with(
        rule: impl Fn(&FakeRequest) -> FakeAnswer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (asked, cluster) = (Arc::new(AtomicU64::new(0)), Cluster::default());
        let (rule, turns, known) = (Arc::new(rule), asked.clone(), cluster.clone());
        let running = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, rule.clone(), turns.clone(), known.clone()));
            }
        });
        Ok(Self { address, asked, cluster, running })
    }

    /// Where it is, for [`Builder::endpoint`](crate::Builder::endpoint).
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often IDs were asked for.
    #[must_use]
    pub fn asked(&self) -> u64 {
        // Relaxed, here and below: a counter.
        self.asked.load(Ordering::Relaxed)
    }

    /// Says from now on that these are the nodes of its cluster: their URLs and zones.
    pub fn list_nodes(&self, nodes: &[(&str, &str)]) {
        let node = |(url, zone): &(&str, &str)| serde_json::json!({ "name": url, "advertise": url, "zone": zone });
        let nodes: Vec<_> = nodes.iter().map(node).collect();
        let cluster = serde_json::json!({ "namespace": "n", "nodes": nodes });
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(cluster.to_string());
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl FakeRequest {
    /// How many IDs it is for.
    #[must_use]
    pub fn count(&self) -> u64 {
        let digits = self.head.split_once("count=").map_or("", |(_, rest)| rest);
        let digits = digits.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(1)
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }

    /// What the answer must repeat.
    #[must_use]
    pub fn nonce(&self) -> &str {
        self.header("frazil-nonce").unwrap_or_default()
    }
}

async fn serve(
    mut stream: TcpStream,
    rule: Arc<impl Fn(&FakeRequest) -> FakeAnswer + Send + Sync + 'static>,
    turns: Arc<AtomicU64>,
    cluster: Cluster,
) {
    let mut bytes = Vec::new();
    loop {
        while !bytes.ends_with(b"\r\n\r\n") {
            match stream.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return,
                Ok(_) if bytes.len() > HEAD_MAX => return,
                Ok(_) => {}
            }
        }
        let head = String::from_utf8_lossy(&std::mem::take(&mut bytes)).into_owned();
        let (asked, answer) = if head.starts_with("GET /v1/info") {
            let asked = FakeRequest { head, turn: 0 };
            (asked, FakeAnswer::Bytes(info()))
        } else if head.starts_with("GET /v1/cluster") {
            let asked = FakeRequest { head, turn: 0 };
            let nonce = [("frazil-nonce", asked.nonce())];
            let answer = match &*cluster.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(cluster) => http_answer("200 OK", &nonce, cluster.as_bytes()),
                None => http_answer("404 None", &nonce, b""),
            };
            (asked, FakeAnswer::Bytes(answer))
        } else {
            let asked = FakeRequest { head, turn: turns.fetch_add(1, Ordering::Relaxed) };
            let answer = rule(&asked);
            (asked, answer)
        };
        if !answer.send(&asked, &mut stream).await {
            return;
        }
    }
}

/// What it says of itself: a node that is ready, with the default layout.
fn info() -> Vec<u8> {
    let body = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "namespace": "n",
        "layout": LayoutInfo::from(&Layout::FRAZIL),
        "limits": { "max_count": 100_000, "max_body_bytes": 1, "max_wait_ms": 1, "scopes": [] },
        "scopes": [],
        "node": {
            "name": "fake", "region": null, "advertise": null, "state": "ready", "reason": null,
            "issuable_seconds": 1.0, "warnings": [],
        },
        "lanes": [],
        "clock": { "time": "", "steps_forward": 0, "steps_back": 0 },
        "store": null,
    });
    let headers = [("content-type", "application/json")];
    http_answer("200 OK", &headers, body.to_string().as_bytes())
}
