//! A million Ids a second: how long requests take, and what that costs the node.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use frazil::coord::time::boot_time;
use frazil_bench::{Table, verdict};
use frazil_wire::proto::Form;
use hdrhistogram::Histogram;
use tokio::runtime::Runtime;

use crate::grpc::Stream;
use crate::process::Process;
use crate::{Effort, Outcome};

/// Ids a second.
const RATE: u64 = 1_000_000;
/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
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
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// Which of the node's addresses.
    address: usize,
    batch: u64,
    request: Request,
    /// The part of a core that it may cost; none for the baseline.
    cpu_max: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Request {
    Http(&'static str),
    Resp,
    Stream,
}

const WAYS: [Way; 5] = [
    Way {
        name: "bare hyper, as often as the last",
        address: 0,
        batch: 100,
        request: Request::Http("application/json"),
        cpu_max: None,
    },
    Way {
        name: "gRPC Stream, runs",
        address: 1,
        batch: 10_000,
        request: Request::Stream,
        cpu_max: Some(0.05),
    },
    Way {
        name: "RESP, batches of 1,000",
        address: 2,
        batch: 1000,
        request: Request::Resp,
        cpu_max: Some(0.05),
    },
    Way {
        name: "HTTP binary, batches of 1,000",
        address: 0,
        batch: 1000,
        request: Request::Http("application/octet-stream"),
        cpu_max: Some(0.05),
    },
    HEALTHY,
];

/// What most clients do.
pub(crate) const HEALTHY: Way = Way {
    name: "HTTP JSON, batches of 100",
    address: 0,
    batch: 100,
    request: Request::Http("application/json"),
    cpu_max: Some(0.15),
};

pub(crate) fn report(effort: Effort) -> Outcome {
    println!(
        "At {RATE} Ids a second, {CONNECTIONS} connections, from the intended start of each request"
    );
    let heading =
        ["way", "Ids/s", "core", "bar", "", "MiB", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms", ""];
    let mut table = Table::new(&heading);
    for way in WAYS {
        let role: &[&str] = if way.cpu_max.is_some() { &["node", "1"] } else { &["bare"] };
        let node = Process::start(role)?;
        let before = node.usage()?;
        let began = boot_time();
        let (latency, issued) = paced(&node, way, effort.span)?;
        let span = (boot_time() - began).as_secs_f64();
        let after = node.usage()?;
        let core = (after.cpu - before.cpu).as_secs_f64() / span;
        let is_small = after.resident_bytes <= RESIDENT_MAX;
        let at = |p: f64| Duration::from_nanos(latency.value_at_quantile(p / 100.0));
        let ms = |p: f64| format!("{:.2}", at(p).as_secs_f64() * 1000.0);
        // Only one way has bars for how long it takes.
        let has_limits = way.batch == 100 && way.cpu_max.is_some();
        let in_time = LATENCIES.iter().all(|(p, most)| at(*p) <= *most);
        #[expect(clippy::cast_precision_loss, reason = "a few million")]
        let rate = issued as f64 / span;
        table.row([
            way.name.into(),
            format!("{rate:.0}"),
            format!("{core:.3}"),
            way.cpu_max.map_or(String::new(), |most| format!("{most:.2}")),
            way.cpu_max.map_or("", |most| verdict(core <= most && is_small)).into(),
            (after.resident_bytes >> 20).to_string(),
            ms(50.0),
            ms(95.0),
            ms(99.0),
            ms(99.9),
            if has_limits { verdict(in_time).into() } else { String::new() },
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
    runtime.block_on(async { tokio::time::sleep(span).await });
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

pub(crate) type Measured = Result<(Histogram<u64>, u64), Box<dyn std::error::Error>>;

/// Asks at the rate from several connections, each with a thread that sleeps until a request is
/// due, and notes how long each took since then.
pub(crate) fn paced(node: &Process, way: Way, span: Duration) -> Measured {
    let connections = if matches!(way.request, Request::Stream) { 1 } else { CONNECTIONS };
    let every = Duration::from_nanos(1_000_000_000 * way.batch * connections / RATE);
    let (mut all, mut issued) = (histogram()?, 0);
    thread::scope(|scope| {
        let mut asking = Vec::new();
        for place in 0..connections {
            let address = node.addresses[way.address].as_str();
            let offset = every * u32::try_from(place)? / u32::try_from(connections)?;
            asking.push(scope.spawn(move || {
                one_connection(address, way, every, offset, span).map_err(|e| e.to_string())
            }));
        }
        for asked in asking {
            let (latency, some) = asked.join().map_err(|_| "a load generator panicked")??;
            all.add(latency)?;
            issued += some;
        }
        Ok((all, issued))
    })
}

fn one_connection(
    address: &str,
    way: Way,
    every: Duration,
    offset: Duration,
    span: Duration,
) -> Measured {
    let mut client = Client::open(address, way)?;
    let mut latency = histogram()?;
    let (mut issued, mut due) = (0, boot_time() + offset);
    let end = due + span;
    while due < end {
        #[expect(clippy::disallowed_methods, reason = "a load generator keeps time")]
        thread::sleep(due.saturating_sub(boot_time()));
        client.ask()?;
        issued += way.batch;
        let took = boot_time().saturating_sub(due).as_nanos();
        latency.saturating_record(u64::try_from(took).unwrap_or(u64::MAX));
        due += every;
    }
    Ok((latency, issued))
}

/// Nanoseconds up to a minute.
fn histogram() -> Result<Histogram<u64>, hdrhistogram::CreationError> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3)
}

enum Client {
    Plain { stream: TcpStream, request: Vec<u8>, buffer: Vec<u8>, is_http: bool },
    Stream { runtime: Runtime, stream: Box<Stream>, batch: u64 },
}

impl Client {
    fn open(address: &str, way: Way) -> Result<Self, Box<dyn std::error::Error>> {
        let (request, is_http) = match way.request {
            Request::Stream => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let stream = Box::new(runtime.block_on(Stream::open(address, Form::Runs))?);
                return Ok(Self::Stream { runtime, stream, batch: way.batch });
            }
            Request::Resp => (format!("*2\r\n$7\r\nID.NEXT\r\n$4\r\n{}\r\n", way.batch), false),
            Request::Http(accept) => {
                let head = format!("POST /ids?count={} HTTP/1.1", way.batch);
                (format!("{head}\r\nhost: bench\r\naccept: {accept}\r\n\r\n"), true)
            }
        };
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self::Plain { stream, request: request.into_bytes(), buffer: Vec::new(), is_http })
    }

    /// One request and its whole answer.
    fn ask(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        match self {
            Self::Stream { runtime, stream, batch } => runtime.block_on(async {
                stream.grant(i64::try_from(*batch)?).await;
                let mut missing = *batch;
                while missing > 0 {
                    missing = missing.saturating_sub(stream.next().await?);
                }
                Ok(())
            }),
            Self::Plain { stream, request, buffer, is_http } => {
                stream.write_all(request)?;
                let (mut filled, mut length) = (0, None);
                while length.is_none_or(|length| filled < length) {
                    buffer.resize(buffer.len().max(filled + READ_BYTES), 0);
                    let read = stream.read(&mut buffer[filled..])?;
                    if read == 0 {
                        return Err("the server closed the connection".into());
                    }
                    filled += read;
                    let bytes = &buffer[..filled];
                    if length.is_none() {
                        length = if *is_http { http_length(bytes)? } else { resp_length(bytes)? };
                    }
                }
                Ok(())
            }
        }
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
