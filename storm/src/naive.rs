//! A node that leases its worker as many examples do, and issues the same IDs as another for it.
//!
//! The control of every lease experiment: a checker that finds nothing here finds nothing. A worker is
//! a key of Redis with a time to live. It is taken if it is not there, its value names nobody, a
//! renewal sets the time to live of whoever's key it is, a release deletes whoever's key it is, and the
//! generator is never told. A node that slept for longer than the time to live goes on with a worker
//! that is somebody else's by then, and both keep it alive.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use frazil_id::{Generator, Layout, SystemClock};

/// A line of a request, or of an answer of Redis, is no longer.
const LINE_MAX: u64 = 8192;
/// IDs of one answer.
const COUNT_MAX: u32 = 10_000;
/// Between two tries to get a worker when all are taken, at the most.
const RETRY_MAX: Duration = Duration::from_millis(200);

/// Serves until it is asked to release its worker by `POST /v1/node:drain`.
///
/// `redis`: its address, `HOST:PORT`. Workers are 0 up to before `workers`.
pub(crate) fn run(redis: &str, listen: SocketAddr, ttl: Duration, workers: u64) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    let (drain, drained) = mpsc::channel();
    let node =
        Arc::new(Node { name: format!("naive-{}", std::process::id()), ids: OnceLock::new() });
    let served = node.clone();
    // It ends with the process.
    thread::Builder::new().name("naive-accept".into()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let (node, drain) = (served.clone(), drain.clone());
            // A client that cannot be served is sent away by the end of its connection.
            let _ = thread::Builder::new().spawn(move || node.serve(stream, &drain));
        }
    })?;
    let lease = Lease::take(redis, ttl, workers, &drained)?;
    let Some(mut lease) = lease else { return Ok(()) };
    let ids = Generator::system(&Layout::FRAZIL, lease.worker).map_err(io::Error::other)?;
    // Nobody else sets it.
    let _ = node.ids.set(ids);
    lease.keep(&drained);
    lease.release()
}

/// What issues, as soon as it has a worker.
struct Node {
    name: String,
    ids: OnceLock<Generator<SystemClock>>,
}

impl Node {
    /// One request after the other, until the client goes.
    fn serve(&self, stream: TcpStream, drain: &Sender<()>) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        while let Some(request) = Request::read(&mut reader)? {
            let (status, body) = match (request.method.as_str(), request.path.as_str()) {
                ("POST", "/v1/ids") => self.issue(request.count),
                ("POST", "/v1/node:drain") => {
                    // Who was told already has no ears left.
                    let _ = drain.send(());
                    ("200 OK", Vec::new())
                }
                _ => ("404 Not Found", Vec::new()),
            };
            let mut head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/octet-stream\r\n\
                 content-length: {}\r\nfrazil-node: {}\r\nfrazil-token: 0\r\n",
                body.len(),
                self.name
            );
            if let Some(nonce) = &request.nonce {
                let _ = write!(head, "frazil-nonce: {nonce}\r\n");
            }
            head.push_str("\r\n");
            writer.write_all(&[head.as_bytes(), &body].concat())?;
            if request.is_last {
                break;
            }
        }
        Ok(())
    }

    fn issue(&self, count: Option<u32>) -> (&'static str, Vec<u8>) {
        let Some(count) = count.filter(|count| (1..=COUNT_MAX).contains(count)) else {
            return ("400 Bad Request", Vec::new());
        };
        let batch = self.ids.get().map(|ids| ids.batch(count));
        match batch {
            Some(Ok(batch)) => {
                ("200 OK", batch.iter().flat_map(|id| id.to_u64().to_be_bytes()).collect())
            }
            Some(Err(_)) | None => ("503 Service Unavailable", Vec::new()),
        }
    }
}

/// What matters of a request.
struct Request {
    method: String,
    path: String,
    /// 1 if the request does not say; `None` if it says nonsense.
    count: Option<u32>,
    nonce: Option<String>,
    is_last: bool,
}

impl Request {
    /// The next one. `None`: the client has gone.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let line = read_line(reader)?;
        let mut words = line.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let count = query.split('&').find_map(|pair| pair.strip_prefix("count="));
        let mut request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            count: count.map_or(Some(1), |count| count.parse().ok()),
            nonce: None,
            is_last: false,
        };
        let mut length = 0;
        loop {
            let line = read_line(reader)?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(io::Error::other)?,
                "connection" => request.is_last = value.eq_ignore_ascii_case("close"),
                "frazil-nonce" => request.nonce = Some(value.to_owned()),
                _ => {}
            }
        }
        io::copy(&mut reader.take(length), &mut io::sink())?;
        Ok(Some(request))
    }
}

/// A worker, for as long as nobody looks closely.
struct Lease {
    redis: Redis,
    ttl: Duration,
    worker: u64,
}

impl Lease {
    /// Takes the first worker that is free, and waits for one. `None`: it was told to stop first.
    fn take(
        redis: &str,
        ttl: Duration,
        workers: u64,
        drained: &Receiver<()>,
    ) -> io::Result<Option<Self>> {
        let mut redis = Redis::connect(redis)?;
        let ttl_ms = ttl.as_millis().to_string();
        loop {
            for worker in 0..workers {
                let claim = ["SET", &key(worker), "claimed", "NX", "PX", &ttl_ms];
                if redis.call(&claim)?.as_deref() == Some("OK") {
                    return Ok(Some(Self { redis, ttl, worker }));
                }
            }
            if drained.recv_timeout(RETRY_MAX.min(ttl / 4)) != Err(RecvTimeoutError::Timeout) {
                return Ok(None);
            }
        }
    }

    /// Renews until told to stop. Whether the key was there, and whose it is, is not looked at.
    fn keep(&mut self, drained: &Receiver<()>) {
        let ttl_ms = self.ttl.as_millis().to_string();
        while drained.recv_timeout(self.ttl / 3) == Err(RecvTimeoutError::Timeout) {
            let renewed = self.redis.call(&["PEXPIRE", &key(self.worker), &ttl_ms]);
            // Next time, over a new connection if there is one.
            if let (Err(_), Ok(redis)) = (renewed, Redis::connect(&self.redis.address)) {
                self.redis = redis;
            }
        }
    }

    fn release(mut self) -> io::Result<()> {
        self.redis.call(&["DEL", &key(self.worker)]).map(drop)
    }
}

fn key(worker: u64) -> String {
    format!("naive:worker:{worker}")
}

/// As much of a client as it takes.
struct Redis {
    address: String,
    stream: BufReader<TcpStream>,
}

impl Redis {
    fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { address: address.to_owned(), stream: BufReader::new(stream) })
    }

    /// One command. `None`: the answer is nothing.
    fn call(&mut self, words: &[&str]) -> io::Result<Option<String>> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            let _ = write!(request, "${}\r\n{word}\r\n", word.len());
        }
        self.stream.get_mut().write_all(request.as_bytes())?;
        let line = read_line(&mut self.stream)?;
        match line.split_at_checked(1) {
            Some(("+" | ":", answer)) => Ok(Some(answer.to_owned())),
            Some(("$" | "_", _)) => Ok(None),
            _ => Err(io::Error::other(format!("Redis answered {line:?}"))),
        }
    }
}

/// A line without its end; empty when the other side has gone.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.take(LINE_MAX).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}
