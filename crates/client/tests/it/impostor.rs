//! A server that answers as it is told, and counts who asked.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One request, as far as impostors care.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) head: String,
    /// The how manieth it is, from 0; requests for `/v1/info` and `/v1/cluster` are not counted.
    pub(crate) turn: u64,
}

/// What an impostor does to a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends these bytes.
    Say(Vec<u8>),
    /// Sends these bytes and closes.
    SayAndClose(Vec<u8>),
    /// Says nothing, and keeps the connection.
    Hang,
}

/// A listener on the loopback address.
pub(crate) struct Impostor {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicU64>,
    cluster: Cluster,
    running: JoinHandle<()>,
}

/// What it says of its cluster, in JSON; `None`: that it knows of none.
type Cluster = Arc<Mutex<Option<String>>>;

impl Impostor {
    pub(crate) async fn start(act: impl Fn(&Asked) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicU64::new(0));
        let cluster = Cluster::default();
        let (act, turns, known) = (Arc::new(act), asked.clone(), cluster.clone());
        let running = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, act.clone(), turns.clone(), known.clone()));
            }
        });
        Self { address, asked, cluster, running }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Says from now on that these are the nodes: their addresses and zones.
    pub(crate) fn lists(&self, nodes: &[(&str, &str)]) {
        let node = |(url, zone): &(&str, &str)| {
            format!("{{\"name\":\"{url}\",\"advertise\":\"{url}\",\"zone\":\"{zone}\"}}")
        };
        let nodes: Vec<String> = nodes.iter().map(node).collect();
        let cluster = format!("{{\"namespace\":\"n\",\"nodes\":[{}]}}", nodes.join(","));
        *self.cluster.lock().unwrap() = Some(cluster);
    }

    /// How often IDs were asked for.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    act: Arc<impl Fn(&Asked) -> Act + Send + Sync + 'static>,
    turns: Arc<AtomicU64>,
    cluster: Cluster,
) {
    let mut bytes = Vec::new();
    loop {
        while !bytes.ends_with(b"\r\n\r\n") {
            match stream.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let head = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
        let act = if head.starts_with("GET /v1/info") {
            Act::Say(info())
        } else if head.starts_with("GET /v1/cluster") {
            let asked = Asked { head, turn: 0 };
            let nonce = [("frazil-nonce", asked.nonce())];
            Act::Say(match &*cluster.lock().unwrap() {
                Some(cluster) => answer("200 OK", &nonce, cluster.as_bytes()),
                None => answer("404 None", &nonce, b""),
            })
        } else {
            act(&Asked { head, turn: turns.fetch_add(1, Ordering::Relaxed) })
        };
        match act {
            Act::Say(answer) => {
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
            }
            Act::SayAndClose(answer) => {
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
                return;
            }
            Act::Hang => std::future::pending().await,
        }
    }
}

impl Asked {
    pub(crate) fn count(&self) -> u64 {
        let rest = self.head.split_once("count=").unwrap().1;
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }

    pub(crate) fn nonce(&self) -> &str {
        self.header("frazil-nonce").unwrap()
    }
}

/// IDs that no other turn has, as a body: all of a layout with 63 bits.
pub(crate) fn body(turn: u64, count: u64) -> Vec<u8> {
    (0..count).flat_map(|place| (turn * 1_000_000 + place + 1).to_be_bytes()).collect()
}

/// An answer with a body and some headers.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    [format!("{head}\r\n").as_bytes(), body].concat()
}

/// The right answer to a request.
pub(crate) fn right(asked: &Asked) -> Vec<u8> {
    let headers = [("content-type", "application/octet-stream"), ("frazil-nonce", asked.nonce())];
    answer("200 OK", &headers, &body(asked.turn, asked.count()))
}

/// A refusal as servers write it.
pub(crate) fn problem(
    asked: &Asked,
    status: u16,
    reason: &str,
    retry_after_ms: Option<u64>,
) -> Vec<u8> {
    let wait = retry_after_ms.map_or_else(|| "null".to_owned(), |ms| ms.to_string());
    let body = format!(
        "{{\"type\":\"urn\",\"title\":\"t\",\"status\":{status},\"detail\":\"d\",\
         \"reason\":\"{reason}\",\"help\":\"h\",\"retry_after_ms\":{wait}}}"
    );
    let headers = [("content-type", "application/problem+json"), ("frazil-nonce", asked.nonce())];
    answer(&format!("{status} X"), &headers, body.as_bytes())
}

fn info() -> Vec<u8> {
    let layout = frazil_client::Layout::FRAZIL.to_string();
    let body = format!(
        "{{\"version\":\"0\",\"namespace\":\"n\",\"layout\":{{\"text\":\"{layout}\",\
         \"fingerprint\":\"0\",\"epoch_ms\":0,\"tick_ms\":1,\"time_bits\":41,\"worker_bits\":10,\
         \"sequence_bits\":12}},\"limits\":{{\"max_count\":100000,\"max_body_bytes\":1,\
         \"max_wait_ms\":1,\"scopes\":[]}},\"scopes\":[],\"node\":{{\"name\":\"impostor\",\
         \"region\":null,\"advertise\":null,\"state\":\"ready\",\"reason\":null,\
         \"issuable_seconds\":1.0,\"warnings\":[]}},\"lanes\":[],\"clock\":{{\"time\":\"\",\
         \"steps_forward\":0,\"steps_back\":0}},\"store\":null}}"
    );
    answer("200 OK", &[("content-type", "application/json")], body.as_bytes())
}
