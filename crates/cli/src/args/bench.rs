//! The arguments of `frazil bench`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use frazil_id::Layout;

use super::{TrustArg, duration, layout};

/// Where a layout is looked for that nobody typed.
pub(crate) const LAYOUT_VARIABLE: &str = "FRAZIL_LAYOUT";

/// Threads of a measurement of the library: beyond that the scheduler is measured.
const THREADS_MAX: u64 = 1024;
/// IDs in one call or request: what the widest sequence measured allows in a tick.
const BATCH_MAX: u64 = 4_194_304;
/// Connections: beyond that the ports of one client are measured.
const CONNECTIONS_MAX: u64 = 10_000;
/// Requests that are under way on one connection.
const PIPELINE_MAX: u64 = 10_000;
/// Requests in a second: more than one machine can send.
const RATE_MAX: u64 = 10_000_000;

/// Measure how fast IDs are issued, by a server or by the library in this process.
///
/// A URL names the server and the protocol: http://HOST:PORT, grpc://HOST:PORT, resp://HOST:PORT or
/// redis://HOST:PORT; https, grpcs, resps and rediss are the same with TLS. Without one it is the
/// local node, with --protocol at the default port of that protocol.
///
/// Each connection asks again as soon as it has its answer. With --rate requests are sent when they
/// are due instead, and the time of each counts from then: a server that stalls cannot hide what
/// would have been asked meanwhile.
///
/// On a terminal the run is drawn as it goes. Ctrl-C ends it early with what was measured so far.
///
/// The exit code is 1 if --verify found something; 3 if no request succeeded, or the server was gone
/// when the time was up; 2 for what cannot be measured. Requests that fail meanwhile are counted.
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  frazil bench
  frazil bench --protocol grpc --verify --duration 10s
  frazil bench http://127.0.0.1:7780 --batch 100 --rate 10000 --json > a.json
  frazil bench redis://127.0.0.1:7782 --pipeline 50 --pid 4711
  frazil bench --library --threads 2 --batch 1000 --verify
  frazil bench compare a.json b.json"
)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
    /// The server to measure.
    // Parsed later: the parser of the command line repeats what it does not understand, and
    // somebody may write a password here.
    #[arg(value_name = "URL", conflicts_with = "library")]
    pub(crate) url: Option<String>,
    /// Measure the library in this process.
    #[arg(long)]
    pub(crate) library: bool,
    /// How to ask; a URL says it too.
    #[arg(long, value_enum, conflicts_with = "library")]
    pub(crate) protocol: Option<ProtocolArg>,
    #[command(flatten)]
    pub(crate) demand: DemandArg,
    /// Prove that all IDs are distinct and in order, and that answers have what was asked for.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Threads that share one generator, with --library: 1 by default, 0 for one on each core.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(..=THREADS_MAX))]
    pub(crate) threads: Option<u64>,
    /// Where time comes from, with --library; the system by default.
    #[arg(long, value_enum)]
    pub(crate) clock: Option<ClockArg>,
    /// The layout of the IDs, with --library and for a server that does not say its own; frazil by
    /// default.
    #[arg(long, value_name = "L", env = LAYOUT_VARIABLE, value_parser = layout)]
    pub(crate) layout: Option<Layout>,
    #[command(flatten)]
    pub(crate) trust: TrustArg,
    /// The server's process, to read its CPU time and memory from /proc.
    #[arg(long, value_name = "P", conflicts_with_all = ["library", "metrics"])]
    pub(crate) pid: Option<NonZeroU32>,
    /// Where the server's CPU time and memory can be read over HTTP, as http://HOST:PORT.
    #[arg(long, value_name = "URL", conflicts_with = "library")]
    pub(crate) metrics: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is asked for, how often and for how long.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct DemandArg {
    /// IDs in one request or call.
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..=BATCH_MAX))]
    pub(crate) batch: u64,
    /// Connections to the server.
    #[arg(long, value_name = "N", default_value = "8", conflicts_with = "library",
          value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    pub(crate) connections: u64,
    /// How long to measure, as `500ms`, `10s` or `2m`; 10s by default, 3s with --library.
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// How long to ask before anything counts; what comes meanwhile is verified too.
    #[arg(long, value_name = "D", default_value = "1s", conflicts_with = "library",
          value_parser = warm_up)]
    pub(crate) warmup: Duration,
    /// Requests in a second over all connections, sent when they are due.
    #[arg(long, value_name = "R", conflicts_with_all = ["library", "pipeline"],
          value_parser = clap::value_parser!(u64).range(1..=RATE_MAX))]
    pub(crate) rate: Option<u64>,
    /// How long a request may take before it is given up.
    #[arg(long, value_name = "D", default_value = "10s", conflicts_with = "library",
          value_parser = duration)]
    pub(crate) timeout: Duration,
    /// The form of the answers over HTTP; binary by default.
    #[arg(long, value_enum, conflicts_with = "library")]
    pub(crate) accept: Option<AcceptArg>,
    /// Have IDs streamed over gRPC: a request is a grant of as many as --batch says.
    #[arg(long, conflicts_with = "library")]
    pub(crate) stream: bool,
    /// Have gRPC send runs: a few bytes for each tick instead of eight for each ID.
    #[arg(long, conflicts_with = "library")]
    pub(crate) runs: bool,
    /// Requests under way on each connection, for RESP, or grants with --stream.
    #[arg(long, value_name = "N", conflicts_with = "library",
          value_parser = clap::value_parser!(u64).range(1..=PIPELINE_MAX))]
    pub(crate) pipeline: Option<u64>,
    /// A scope that the server declares.
    #[arg(long, value_name = "S", conflicts_with = "library")]
    pub(crate) scope: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Compare(CompareArgs),
}

/// Compare two measurements that --json wrote.
///
/// A difference of the rates counts as one only if the middle halves of the rates of the single
/// seconds lie apart: what overlaps may be chance. What else was not the same in both is warned of.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil bench --json > a.json; frazil bench --json --batch 100 > b.json
  frazil bench compare a.json b.json")]
pub(crate) struct CompareArgs {
    /// The first measurement: what the other is compared with.
    #[arg(value_name = "A")]
    pub(crate) before: PathBuf,
    /// The second one.
    #[arg(value_name = "B")]
    pub(crate) after: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolArg {
    /// HTTP/1.1, connections kept alive.
    Http,
    /// gRPC: Next, or Stream with --stream.
    Grpc,
    /// The protocol of Redis: ID.NEXT.
    Resp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcceptArg {
    /// JSON with metadata.
    Json,
    /// One ID a line.
    Text,
    /// Big-endian 64-bit numbers.
    Binary,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ClockArg {
    /// Read the system's clock on every call.
    System,
    /// Read a tick that a thread publishes.
    Ticker,
}

/// An hour: a longer warm-up is a mistyped unit.
const WARM_UP_MAX: Duration = Duration::from_hours(1);

fn warm_up(text: &str) -> Result<Duration, String> {
    let valid = frazil_coord::internal::duration(text).filter(|span| *span <= WARM_UP_MAX);
    valid.ok_or_else(|| {
        "write whole numbers with ms, s, m or h (10s, 1m30s), from 0s to 1h".to_owned()
    })
}
