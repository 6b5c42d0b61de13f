//! A million Ids a second: how long requests take, and what that costs the node.

use std::time::Duration;

use frazil::coord::time::boot_time;
use frazil_bench::{Table, verdict};
use frazil_wire::proto::Form;
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::grpc::Stream;
use crate::process::Process;
use crate::{Effort, Outcome};

/// Ids a second.
const RATE: u64 = 1_000_000;
/// Connections that share the rate.
const CONNECTIONS: u64 = 8;
/// What memory a node may use.
const RESIDENT_MAX: u64 = 30 << 20;
/// Percentiles and what they may be, for HTTP in batches of 100.
const LATENCIES: [(f64, Duration); 4] = [
    (50.0, Duration::from_micros(500)),
    (95.0, Duration::from_millis(1)),
    (99.0, Duration::from_millis(2)),
    (99.9, Duration::from_millis(10)),
];

/// A way to ask for Ids.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    /// Which of the node's addresses.
    address: usize,
    batch: u64,
    request: Request,
    /// The part of a core that it may cost.
    cpu_max: f64,
}

#[derive(Clone, Copy, Debug)]
enum Request {
    Http(&'static str),
    Resp,
    Stream,
}

const WAYS: [Way; 4] = [
    Way {
        name: "gRPC Stream, runs",
        address: 1,
        batch: 10_000,
        request: Request::Stream,
        cpu_max: 0.05,
    },
    Way {
        name: "RESP, batches of 1,000",
        address: 2,
        batch: 1000,
        request: Request::Resp,
        cpu_max: 0.05,
    },
    Way {
        name: "HTTP binary, batches of 1,000",
        address: 0,
        batch: 1000,
        request: Request::Http("application/octet-stream"),
        cpu_max: 0.05,
    },
    Way {
        name: "HTTP JSON, batches of 100",
        address: 0,
        batch: 100,
        request: Request::Http("application/json"),
        cpu_max: 0.15,
    },
];

pub(crate) fn report(effort: Effort) -> Outcome {
    println!(
        "At {RATE} Ids a second, {CONNECTIONS} connections, from the intended start of each request"
    );
    let heading =
        ["way", "Ids/s", "core", "bar", "", "MiB", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms", ""];
    let mut table = Table::new(&heading);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for way in WAYS {
        let node = Process::start(&["node", "1"])?;
        let before = node.usage()?;
        let began = boot_time();
        let (latency, issued) = runtime.block_on(paced(&node, way, effort.span))?;
        let span = (boot_time() - began).as_secs_f64();
        let after = node.usage()?;
        let core = (after.cpu - before.cpu).as_secs_f64() / span;
        let is_small = after.resident_bytes <= RESIDENT_MAX;
        let at = |p: f64| Duration::from_nanos(latency.value_at_quantile(p / 100.0));
        let ms = |p: f64| format!("{:.2}", at(p).as_secs_f64() * 1000.0);
        // Only one way has bars for how long it takes.
        let in_time = way.batch != 100 || LATENCIES.iter().all(|(p, most)| at(*p) <= *most);
        #[expect(clippy::cast_precision_loss, reason = "a few million")]
        let rate = issued as f64 / span;
        table.row([
            way.name.into(),
            format!("{rate:.0}"),
            format!("{core:.3}"),
            format!("{:.2}", way.cpu_max),
            verdict(core <= way.cpu_max && is_small).into(),
            (after.resident_bytes >> 20).to_string(),
            ms(50.0),
            ms(95.0),
            ms(99.0),
            ms(99.9),
            if way.batch == 100 { verdict(in_time).into() } else { String::new() },
        ]);
    }
    println!("{table}");
    idle(effort)
}

fn idle(effort: Effort) -> Outcome {
    let node = Process::start(&["node", "1"])?;
    let span = effort.span * 2;
    let before = node.usage()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(tokio::time::sleep(span));
    let after = node.usage()?;
    let core = (after.cpu - before.cpu).as_secs_f64() / span.as_secs_f64();
    println!(
        "idle for {} s: {core:.4} of a core, {} MiB; bar 0.005 and 30: {}\n",
        span.as_secs(),
        after.resident_bytes >> 20,
        verdict(core <= 0.005 && after.resident_bytes <= RESIDENT_MAX)
    );
    Ok(())
}

type Measured = Result<(Histogram<u64>, u64), Box<dyn std::error::Error>>;

/// Asks at the rate from several connections, and notes how long each request took since it was to
/// be sent.
async fn paced(node: &Process, way: Way, span: Duration) -> Measured {
    let mut asking = JoinSet::new();
    let connections = if matches!(way.request, Request::Stream) { 1 } else { CONNECTIONS };
    let every = Duration::from_nanos(1_000_000_000 * way.batch * connections / RATE);
    for place in 0..connections {
        let address = node.addresses[way.address].clone();
        let offset = every * u32::try_from(place)? / u32::try_from(connections)?;
        asking.spawn(async move {
            let mut client = Client::open(&address, way).await.map_err(|e| e.to_string())?;
            let mut latency = Histogram::<u64>::new(3).map_err(|e| e.to_string())?;
            let (mut issued, mut due) = (0, boot_time() + offset);
            let end = boot_time() + span;
            while due < end {
                let wait = due.saturating_sub(boot_time());
                if !wait.is_zero() {
                    tokio::time::sleep(wait).await;
                }
                client.ask().await.map_err(|e| e.to_string())?;
                issued += way.batch;
                let took = boot_time().saturating_sub(due).as_nanos();
                latency.saturating_record(u64::try_from(took).unwrap_or(u64::MAX));
                due += every;
            }
            Ok::<_, String>((latency, issued))
        });
    }
    let (mut all, mut issued) = (Histogram::new(3)?, 0);
    while let Some(asked) = asking.join_next().await {
        let (latency, some) = asked??;
        all.add(latency)?;
        issued += some;
    }
    Ok((all, issued))
}

enum Client {
    Plain { stream: TcpStream, request: Vec<u8>, buffer: Vec<u8>, is_http: bool },
    Stream(Box<Stream>, u64),
}

impl Client {
    async fn open(address: &str, way: Way) -> Result<Self, Box<dyn std::error::Error>> {
        let (request, is_http) = match way.request {
            Request::Stream => {
                let stream = Stream::open(address, Form::Runs).await?;
                return Ok(Self::Stream(Box::new(stream), way.batch));
            }
            Request::Resp => (format!("*2\r\n$7\r\nID.NEXT\r\n$4\r\n{}\r\n", way.batch), false),
            Request::Http(accept) => {
                let head = format!("POST /ids?count={} HTTP/1.1", way.batch);
                (format!("{head}\r\nhost: bench\r\naccept: {accept}\r\n\r\n"), true)
            }
        };
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self::Plain { stream, request: request.into_bytes(), buffer: Vec::new(), is_http })
    }

    /// One request and its whole answer.
    async fn ask(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        match self {
            Self::Stream(stream, batch) => {
                stream.grant(i64::try_from(*batch)?).await;
                let mut missing = *batch;
                while missing > 0 {
                    missing = missing.saturating_sub(stream.next().await?);
                }
            }
            Self::Plain { stream, request, buffer, is_http } => {
                stream.write_all(request).await?;
                buffer.clear();
                let mut length = None;
                while length.is_none_or(|length| buffer.len() < length) {
                    if stream.read_buf(buffer).await? == 0 {
                        return Err("the server closed the connection".into());
                    }
                    if length.is_none() {
                        length = if *is_http { http_length(buffer)? } else { resp_length(buffer)? };
                    }
                }
            }
        }
        Ok(())
    }
}

/// The bytes of a whole answer, as soon as its head is there.
fn http_length(bytes: &[u8]) -> Result<Option<usize>, Box<dyn std::error::Error>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end])?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(head.to_owned().into());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    Ok(Some(end + 4 + length.ok_or("no length")?.parse::<usize>()?))
}

/// The same for an array of Ids, which all have as many digits as the first.
fn resp_length(bytes: &[u8]) -> Result<Option<usize>, Box<dyn std::error::Error>> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let (Some(count), Some(size), Some(_)) = (lines.next(), lines.next(), lines.next()) else {
        return Ok(None);
    };
    let number = |line: &[u8], kind: u8| -> Result<usize, Box<dyn std::error::Error>> {
        let text = std::str::from_utf8(line)?.trim_end();
        let digits = text.strip_prefix(char::from(kind)).ok_or_else(|| text.to_owned())?;
        Ok(digits.parse()?)
    };
    let (ids, digits) = (number(count, b'*')?, number(size, b'$')?);
    Ok(Some(count.len() + 1 + ids * (size.len() + 1 + digits + 2)))
}
