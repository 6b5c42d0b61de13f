//! A million IDs a second: how long requests take, and what that costs the node.

use std::thread;
use std::time::Duration;

use frazil::coord::internal::time::boot_time;
use frazil_bench::{Table, verdict};
use hdrhistogram::Histogram;

use crate::client::{Client, Request, Workload};
use crate::http::median;
use crate::process::Process;
use crate::{MeasurementPlan, Outcome};

/// IDs a second.
const RATE: u64 = 1_000_000;
/// Connections that share the rate.
const CONNECTIONS: u64 = 8;
/// What memory a node may use.
const RESIDENT_MAX: u64 = 30 << 20;
/// Rounds in which all take turns; what disturbs the machine disturbs all alike.
const ROUNDS_MAX: usize = 3;
/// The CPU time of JSON beside that of the bare handler.
const CPU_RATIO_MAX: f64 = 1.05;

/// Percentiles and what they may be.
type Latencies = &'static [(f64, Duration)];
const FAST: Latencies = &[
    (50.0, Duration::from_micros(100)),
    (99.0, Duration::from_micros(500)),
    (99.9, Duration::from_millis(2)),
];
const JSON: Latencies = &[(99.0, Duration::from_millis(2))];

/// What most clients do.
pub(crate) const HEALTHY: Workload =
    Workload { name: "HTTP JSON, batches of 100", batch: 100, request: Request::JSON };

/// A row: what asks, and the bars.
#[derive(Clone, Copy)]
struct Row {
    way: Workload,
    role: &'static str,
    latencies: Latencies,
    /// The part of a core that it may cost.
    cpu_max: Option<f64>,
}

const BARE_BINARY: Row = Row {
    way: Workload { name: "bare hyper, binary, 1,000", batch: 1000, request: Request::BINARY },
    role: "bare",
    latencies: FAST,
    cpu_max: Some(0.05),
};
const BARE_JSON: Row = Row {
    way: Workload { name: "bare hyper, JSON, 100", batch: 100, request: Request::JSON },
    role: "bare",
    latencies: JSON,
    cpu_max: None,
};
const STREAM: Workload =
    Workload { name: "gRPC Stream, runs", batch: 10_000, request: Request::Stream };
const RESP: Workload =
    Workload { name: "RESP, batches of 1,000", batch: 1000, request: Request::Resp };
const BINARY: Workload =
    Workload { name: "HTTP binary, batches of 1,000", batch: 1000, request: Request::BINARY };

/// The bare handlers come first: each row after them is beside one of these.
const ROWS: [Row; 6] = [
    BARE_BINARY,
    BARE_JSON,
    Row { way: STREAM, role: "node", latencies: FAST, cpu_max: Some(0.05) },
    Row { way: RESP, role: "node", latencies: FAST, cpu_max: Some(0.05) },
    Row { way: BINARY, role: "node", latencies: FAST, cpu_max: Some(0.05) },
    Row { way: HEALTHY, role: "node", latencies: JSON, cpu_max: None },
];

/// What a row came to in a round.
struct Round {
    latency: Histogram<u64>,
    rate: f64,
    core: f64,
    resident_bytes: u64,
}

/// The medians of the rounds of a row.
struct Median {
    /// By percentile: 50, 99, 99.9.
    ms: [f64; 3],
    rate: f64,
    core: f64,
    resident_bytes: u64,
}

const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

pub(crate) fn report(effort: MeasurementPlan) -> Outcome {
    println!(
        "At {RATE} IDs a second, {CONNECTIONS} connections, from the intended start of each request"
    );
    let mut rounds: [Vec<Round>; ROWS.len()] = Default::default();
    for _ in 0..effort.rounds.min(ROUNDS_MAX) {
        for (row, rounds) in ROWS.iter().zip(&mut rounds) {
            rounds.push(round(row, effort.span)?);
        }
    }
    let medians = rounds.map(|rounds| Median::of(&rounds));
    let heading =
        ["way", "IDs/s", "core", "bar", "", "MiB", "p50 ms", "p99 ms", "p99.9 ms", "bars", ""];
    let mut table = Table::new(&heading);
    for (row, median) in ROWS.iter().zip(&medians) {
        let bare = &medians[usize::from(row.way.request == Request::JSON)];
        table.row(line(row, median, bare));
    }
    println!("{table}");
    let (ours, bare) = (medians[ROWS.len() - 1].core, medians[1].core);
    println!(
        "CPU of HTTP JSON in batches of 100 beside the bare handler: {:.2}; bar {CPU_RATIO_MAX}: {}\n",
        ours / bare,
        verdict(ours / bare <= CPU_RATIO_MAX)
    );
    idle(effort)
}

fn line(row: &Row, median: &Median, bare: &Median) -> [String; 11] {
    let is_small = median.resident_bytes <= RESIDENT_MAX;
    let is_bare = row.role == "bare";
    let word = |holds: bool, bare_holds: bool| match (holds, bare_holds) {
        (false, false) if !is_bare => "MISSES, bare too".to_owned(),
        _ => verdict(holds).to_owned(),
    };
    let cheap = |median: &Median| row.cpu_max.is_none_or(|most| median.core <= most);
    [
        row.way.name.into(),
        format!("{:.0}", median.rate),
        format!("{:.3}", median.core),
        row.cpu_max.map_or(String::new(), |most| format!("{most:.2}")),
        row.cpu_max.map_or(String::new(), |_| word(cheap(median) && is_small, cheap(bare))),
        (median.resident_bytes >> 20).to_string(),
        format!("{:.2}", median.ms[0]),
        format!("{:.2}", median.ms[1]),
        format!("{:.2}", median.ms[2]),
        bars(row.latencies),
        word(median.is_within(row.latencies), bare.is_within(row.latencies)),
    ]
}

fn bars(latencies: Latencies) -> String {
    let most = |(percentile, most): &(f64, Duration)| {
        format!("p{percentile} {}", most.as_secs_f64() * 1000.0)
    };
    latencies.iter().map(most).collect::<Vec<_>>().join(", ")
}

impl Median {
    fn of(rounds: &[Round]) -> Self {
        let of = |value: &dyn Fn(&Round) -> f64| {
            median(&mut rounds.iter().map(value).collect::<Vec<_>>())
        };
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few milliseconds")]
        let ms = |percentile: f64| {
            of(&|round| round.latency.value_at_quantile(percentile / 100.0) as f64 / 1e6)
        };
        Self {
            ms: PERCENTILES.map(ms),
            rate: of(&|round| round.rate),
            core: of(&|round| round.core),
            resident_bytes: rounds.iter().map(|round| round.resident_bytes).max().unwrap_or(0),
        }
    }

    fn is_within(&self, latencies: Latencies) -> bool {
        latencies.iter().all(|(percentile, most)| {
            let place = PERCENTILES.iter().position(|known| known == percentile);
            place.is_some_and(|place| self.ms[place] <= most.as_secs_f64() * 1000.0)
        })
    }
}

fn round(row: &Row, span: Duration) -> Result<Round, Box<dyn std::error::Error>> {
    let node = Process::start(&[row.role])?;
    let before = node.usage()?;
    let began = boot_time();
    let (latency, issued) = paced(&node, row.way, span)?;
    let span = (boot_time() - began).as_secs_f64();
    let after = node.usage()?;
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    let rate = issued as f64 / span;
    Ok(Round {
        latency,
        rate,
        core: (after.cpu - before.cpu).as_secs_f64() / span,
        resident_bytes: after.resident_bytes,
    })
}

fn idle(effort: MeasurementPlan) -> Outcome {
    let node = Process::start(&["node"])?;
    let span = effort.span * 2;
    let before = node.usage()?;
    pause(span);
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
pub(crate) fn paced(node: &Process, way: Workload, span: Duration) -> Measured {
    let connections = if way.request == Request::Stream { 1 } else { CONNECTIONS };
    let every = Duration::from_nanos(1_000_000_000 * way.batch * connections / RATE);
    let (mut all, mut issued) = (histogram()?, 0);
    thread::scope(|scope| {
        let mut asking = Vec::new();
        for place in 0..connections {
            let offset = every * u32::try_from(place)? / u32::try_from(connections)?;
            asking.push(scope.spawn(move || {
                let mut client = Client::open(node, way).map_err(|e| e.to_string())?;
                pause(offset);
                let mut latency = histogram().map_err(|e| e.to_string())?;
                let ask = || client.ask().map_err(|e| e.to_string());
                let asked = ask_every(every, span, &mut latency, ask)?;
                Ok::<_, String>((latency, asked * way.batch))
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

/// Asks whenever it is due, for a time, and notes how long each answer took since then; how often.
fn ask_every<E>(
    every: Duration,
    span: Duration,
    latency: &mut Histogram<u64>,
    mut ask: impl FnMut() -> Result<(), E>,
) -> Result<u64, E> {
    let (mut asked, mut due) = (0, boot_time());
    let end = due + span;
    while due < end {
        pause(due.saturating_sub(boot_time()));
        ask()?;
        asked += 1;
        let took = boot_time().saturating_sub(due).as_nanos();
        latency.saturating_record(u64::try_from(took).unwrap_or(u64::MAX));
        due += every;
    }
    Ok(asked)
}

pub(crate) fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a load generator keeps time")]
    thread::sleep(span);
}

/// Nanoseconds up to a minute.
pub(crate) fn histogram() -> Result<Histogram<u64>, hdrhistogram::CreationError> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3)
}
