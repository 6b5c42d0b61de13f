//! The arguments of `frazil serve`.
//!
//! Each argument here (but `dev` and `config`) is also a key of the configuration file: see
//! [`KEYS`](crate::config::KEYS).

mod limits;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args as ClapArgs, ValueEnum};
use frazil_log::{Filter, Form};
use frazil_server::keys::KeySource;
use frazil_server::{AddressRange, LaneCount};

pub(crate) use self::limits::LimitArgs;
use super::key::key_source;
use super::{LayoutArg, PlaceArg, WorkersArg, duration};

/// Names the configuration file where the flag does not.
pub(crate) const CONFIG_VARIABLE: &str = "FRAZIL_CONFIG";

/// Run an ID server: HTTP, gRPC and RESP.
///
/// Without arguments it leases a worker from the file store under the state directory and listens
/// on 127.0.0.1, ports 7780 (HTTP), 7781 (gRPC) and 7782 (RESP). It goes on without its store until
/// its horizon, and says how long that is (/readyz?verbose, frazil_issuable_seconds).
///
/// Every setting is a flag, a FRAZIL_... variable or a key of the file that --config names: a flag
/// counts for more than the environment, that for more than the file, and that for more than the
/// default. `frazil config` shows, checks and explains them.
///
/// SIGHUP reads the configuration, the keys and the certificates again: they and the log level
/// change at once, and what needs a restart is named in the log. A file that has become wrong changes
/// nothing.
///
/// SIGTERM or Ctrl-C: not ready at once, a short delay for balancers to notice, no new connections,
/// requests in flight finished, the worker released, exit code 0. A second signal ends at once.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil serve
  frazil serve --dev
  frazil serve --config /etc/frazil/frazil.toml
  frazil serve --store redis://127.0.0.1:6379 --namespace orders --lanes auto
  frazil serve --store etcd://10.0.0.1:2379 --advertise http://10.0.0.7:7780 --region eu

Try it:
  curl -X POST 'http://127.0.0.1:7780/ids?count=3'
  redis-cli -p 7782 ID.NEXT

Every flag is also a variable (--max-ahead is FRAZIL_MAX_AHEAD) and a key of the file. `frazil help serve` tells more
about each, and about limits and timeouts; `frazil help stores` about the URLs of stores.")]
pub(crate) struct ServeArgs {
    /// A temporary file store, free ports, and an end without delay: nothing is left behind.
    ///
    /// What the environment and the file say about those is ignored.
    #[arg(long, conflicts_with_all = ["store", "worker", "http", "grpc", "resp"])]
    pub(crate) dev: bool,
    /// A file of settings, as `frazil config example` prints one. None is read by itself.
    #[arg(long, value_name = "FILE", env = CONFIG_VARIABLE)]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// The API keys: a file, or the word store for those in the namespace's store.
    ///
    /// The node follows changes of those in the store. Without keys, every client may do everything but administer.
    #[arg(long, value_name = "FILE|store", env = "FRAZIL_KEYS", value_parser = key_source())]
    pub(crate) keys: Option<KeySource>,
    /// Show metrics to those without a key.
    #[arg(long, env = "FRAZIL_OPEN_METRICS", value_name = "true|false", default_value = "false",
          value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true,
          default_missing_value = "true", hide_default_value = true)]
    pub(crate) open_metrics: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// The file with the store's password, unless the store's URL names one.
    #[arg(long, value_name = "FILE", env = "FRAZIL_STORE_PASSWORD_FILE")]
    pub(crate) store_password_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) workers: WorkersArg,
    /// A fixed worker number instead of a lease from a shared store; nobody but you sees to it
    /// that no other machine uses it.
    #[arg(long, value_name = "W", env = "FRAZIL_WORKER", conflicts_with_all = ["store", "workers"])]
    pub(crate) worker: Option<u32>,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    /// How many workers to issue with: a number from 1 to 64, or `auto` for more while the
    /// sequence is used up and fewer when idle.
    #[arg(long, value_name = "N|auto", default_value = "1", env = "FRAZIL_LANES",
          value_parser = lanes)]
    pub(crate) lanes: LaneCount,
    /// Threads that serve HTTP and RESP; by default half of the cores.
    #[arg(long, value_name = "N", env = "FRAZIL_THREADS",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// The node's name; by default its host and process id.
    #[arg(long, value_name = "NAME", env = "FRAZIL_NODE")]
    pub(crate) node: Option<String>,
    /// The region that the node stands in.
    #[arg(long, value_name = "R", env = "FRAZIL_REGION")]
    pub(crate) region: Option<String>,
    /// The zone that the node stands in: clients ask nodes of their own zone first.
    #[arg(long, value_name = "Z", env = "FRAZIL_ZONE")]
    pub(crate) zone: Option<String>,
    /// Where others reach this node.
    ///
    /// Shown by /v1/cluster. Other nodes forward strict scopes to it; without it, to the address that
    /// it listens on.
    #[arg(long, value_name = "URL", env = "FRAZIL_ADVERTISE")]
    pub(crate) advertise: Option<String>,
    /// A scope that requests may name, or `S=strict`; may be given several times.
    ///
    /// IDs of a strict scope strictly increase across the cluster: one node at a time issues them,
    /// and the others forward to it.
    #[arg(long = "scope", value_name = "S[=strict]", env = "FRAZIL_SCOPES", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// Who leads a strict scope, or the cluster, is replaced after so long without a word.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_ELECTION_TTL",
          value_parser = duration)]
    pub(crate) election_ttl: Duration,
    #[command(flatten)]
    pub(crate) peer: PeerArgs,
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
    #[command(flatten)]
    pub(crate) drain: DrainArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// Where the server listens.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ListenArgs {
    /// Where HTTP listens; `off` for nowhere.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7780", env = "FRAZIL_HTTP",
          value_parser = address)]
    pub(crate) http: Address,
    /// Where gRPC listens; `off` for nowhere.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7781", env = "FRAZIL_GRPC",
          value_parser = address)]
    pub(crate) grpc: Address,
    /// Where RESP listens; `off` for nowhere.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7782", env = "FRAZIL_RESP",
          value_parser = address)]
    pub(crate) resp: Address,
    /// Where the verbs for administrators are served, apart from the rest; `off` for nowhere.
    #[arg(long, value_name = "ADDR", default_value = "off", env = "FRAZIL_ADMIN",
          value_parser = address)]
    pub(crate) admin: Address,
    /// Proxies that may name the client for whom they connect, as addresses or ranges.
    ///
    /// May be given several times. They do it by the PROXY protocol, version 2, on every listener, or by Forwarded or
    /// X-Forwarded-For on those of HTTP and gRPC. From others these are ignored or refused.
    #[arg(long, value_name = "CIDR", env = "FRAZIL_TRUSTED_PROXIES", value_delimiter = ',')]
    pub(crate) trusted_proxies: Vec<AddressRange>,
    /// Listen on addresses that others can reach, without TLS or keys: anybody there gets IDs and
    /// sees the cluster.
    #[arg(long, env = "FRAZIL_INSECURE", value_name = "true|false", default_value = "false",
          value_parser = BoolishValueParser::new(), num_args = 0..=1, require_equals = true,
          default_missing_value = "true", hide_default_value = true)]
    pub(crate) insecure: bool,
}

/// The certificates of the listeners.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct TlsArgs {
    /// The certificate of all listeners, followed by those that lead to its authority, as PEM.
    #[arg(long, value_name = "FILE", env = "FRAZIL_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM.
    #[arg(long, value_name = "FILE", env = "FRAZIL_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The authorities whose certificates clients must show, as PEM. Without it they need none.
    #[arg(long, value_name = "FILE", env = "FRAZIL_TLS_CLIENT_CA")]
    pub(crate) tls_client_ca: Option<PathBuf>,
}

/// How other nodes are asked.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct PeerArgs {
    /// The file with the key, of the role peer, that is shown to other nodes.
    ///
    /// Needed where there are keys and strict scopes, which are forwarded.
    #[arg(long, value_name = "FILE", env = "FRAZIL_PEER_KEY_FILE")]
    pub(crate) peer_key_file: Option<PathBuf>,
    /// The authorities that other nodes' certificates must come from, as PEM. Needed where nodes
    /// speak TLS.
    #[arg(long, value_name = "FILE", env = "FRAZIL_PEER_CA")]
    pub(crate) peer_ca: Option<PathBuf>,
}

/// The durations of the lease and the rules of the clock.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct LeaseArgs {
    /// Without renewal, another node may take the worker over after this.
    #[arg(long, value_name = "D", default_value = "30s", env = "FRAZIL_TTL",
          value_parser = duration)]
    pub(crate) ttl: Duration,
    /// Between two renewals; at most a third of the TTL.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_HEARTBEAT",
          value_parser = duration)]
    pub(crate) heartbeat: Duration,
    /// The longest outage of the store to survive; after a crash the worker rests as long.
    #[arg(long, value_name = "D", default_value = "10m", env = "FRAZIL_OUTAGE_BUDGET",
          value_parser = duration)]
    pub(crate) outage_budget: Duration,
    /// When the clock steps back by 5 ms or more: refuse until it has caught up, or ride on
    /// elapsed time.
    #[arg(long, value_enum, default_value_t = RollbackArg::Refuse, env = "FRAZIL_ROLLBACK")]
    pub(crate) rollback: RollbackArg,
    /// How far IDs may run ahead of the clock when a tick's sequence is used up.
    #[arg(long, value_name = "D", default_value = "10ms", env = "FRAZIL_MAX_AHEAD",
          value_parser = duration)]
    pub(crate) max_ahead: Duration,
}

/// How the node goes.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct DrainArgs {
    /// After a signal, how long balancers have to notice before connections are refused.
    #[arg(long, value_name = "D", default_value = "500ms", env = "FRAZIL_DRAIN_DELAY",
          value_parser = limits::duration_or_none)]
    pub(crate) drain_delay: Duration,
    /// How long requests in flight have to finish then.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_DRAIN_TIMEOUT",
          value_parser = duration)]
    pub(crate) drain_timeout: Duration,
    /// A node that could issue nothing for this long shuts down with exit code 4.
    #[arg(long, value_name = "D", default_value = "10m", env = "FRAZIL_REFUSAL_LIMIT",
          value_parser = duration)]
    pub(crate) refusal_limit: Duration,
}

/// What is logged, and how.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct LogArgs {
    /// What is logged to stderr: off, error, warn, info, debug or trace.
    ///
    /// The level of single targets may follow, as `info,frazil_coord=debug,h2=trace`. Libraries are at
    /// warn unless named.
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "FRAZIL_LOG",
          value_parser = str::parse::<Filter>)]
    pub(crate) log: Filter,
    /// The form of the log: lines to read, or one JSON object per line.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Text,
          env = "FRAZIL_LOG_FORMAT")]
    pub(crate) log_format: Form,
}

/// An address, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(pub(crate) Option<SocketAddr>);

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RollbackArg {
    /// Issue nothing until the clock has caught up.
    Refuse,
    /// Go on by elapsed time, with times ahead of the clock.
    Ride,
}

fn address(text: &str) -> Result<Address, String> {
    if text == "off" {
        return Ok(Address(None));
    }
    let port =
        |port: &str| port.parse().ok().filter(|_| port.bytes().all(|digit| digit.is_ascii_digit()));
    let local = text.strip_prefix("localhost:").unwrap_or(text);
    let address = match (port(local), text.strip_prefix(':').and_then(port)) {
        (Some(port), _) => Some((Ipv4Addr::LOCALHOST, port).into()),
        (_, Some(port)) => Some((Ipv4Addr::UNSPECIFIED, port).into()),
        _ => text.parse().ok(),
    };
    address.map(|address| Address(Some(address))).ok_or_else(|| {
        "write an IP address with a port (127.0.0.1:7780, [::1]:0), localhost:PORT or PORT, :PORT for all \
         addresses, or off"
            .to_owned()
    })
}

fn lanes(text: &str) -> Result<LaneCount, String> {
    if text == "auto" {
        return Ok(LaneCount::Auto);
    }
    let count = text.parse().ok().filter(|count| (1..=64).contains(count));
    count.map(LaneCount::Fixed).ok_or_else(|| "write a number from 1 to 64, or auto".to_owned())
}
