//! The limits of connections and requests.

use std::time::Duration;

use clap::Args as ClapArgs;
use frazil_server::Limits;

use crate::args::duration;

/// A megabyte more or less is a choice; gigabytes of one client are a mistyped number.
const BYTES_MAX: usize = 1 << 30;
/// More than any machine has file descriptors.
const NUMBER_MAX: usize = 100_000_000;

/// Every limit has a name, a default and a reason: see [`Limits`].
#[derive(Clone, Copy, Debug, ClapArgs)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// The most IDs of one request.
    #[arg(long, value_name = "N", default_value = "100000", env = "FRAZIL_MAX_COUNT",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000), hide_short_help = true)]
    pub(crate) max_count: u32,
    /// How long a request may wait for IDs.
    #[arg(long, value_name = "D", default_value = "2s", env = "FRAZIL_MAX_WAIT",
          value_parser = duration, hide_short_help = true)]
    pub(crate) max_wait: Duration,
    /// The longest body of a request.
    #[arg(long, value_name = "BYTES", default_value = "1048576", env = "FRAZIL_MAX_BODY_BYTES",
          value_parser = bytes, hide_short_help = true)]
    pub(crate) max_body_bytes: usize,
    /// The longest head of a request, all headers together; at least 8192.
    #[arg(long, value_name = "BYTES", default_value = "16384", env = "FRAZIL_MAX_HEAD_BYTES",
          value_parser = bytes, hide_short_help = true)]
    pub(crate) max_head_bytes: usize,
    /// The longest path with its query; no longer than a head.
    #[arg(long, value_name = "BYTES", default_value = "8192", env = "FRAZIL_MAX_URI_BYTES",
          value_parser = bytes, hide_short_help = true)]
    pub(crate) max_uri_bytes: usize,
    /// The most headers of a request.
    #[arg(long, value_name = "N", default_value = "100", env = "FRAZIL_MAX_HEADERS",
          value_parser = number, hide_short_help = true)]
    pub(crate) max_headers: usize,
    /// Requests that wait for IDs at a time; beyond it they are told to go elsewhere.
    #[arg(long, value_name = "N", default_value = "16384", env = "FRAZIL_MAX_WAITING",
          value_parser = number, hide_short_help = true)]
    pub(crate) max_waiting: usize,
    /// HTTP and gRPC requests that are answered at a time; keys that hold few of them are let in
    /// beyond it, up to twice as many in all.
    #[arg(long, value_name = "N", default_value = "16384", env = "FRAZIL_MAX_IN_FLIGHT",
          value_parser = number, hide_short_help = true)]
    pub(crate) max_in_flight: usize,
    /// Connections of one protocol; fewer if the system has fewer file descriptors.
    #[arg(long, value_name = "N", default_value = "10000", env = "FRAZIL_MAX_CONNECTIONS",
          value_parser = number, hide_short_help = true)]
    pub(crate) max_connections: usize,
    /// Connections of one protocol from one address; a proxy in front needs more, unless it is
    /// trusted.
    #[arg(long, value_name = "N", default_value = "4000", env = "FRAZIL_MAX_CONNECTIONS_PER_PEER",
          value_parser = number, hide_short_help = true)]
    pub(crate) max_connections_per_peer: usize,
    /// Wrong keys from one address within a minute; beyond it none of that address is looked at for
    /// a second, then for two, and so on up to a minute.
    #[arg(long, value_name = "N", default_value = "10", env = "FRAZIL_MAX_FAILED_KEYS",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000), hide_short_help = true)]
    pub(crate) max_failed_keys: u32,
    /// HTTP/2 streams of one connection at a time.
    #[arg(long, value_name = "N", default_value = "100", env = "FRAZIL_MAX_STREAMS",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000), hide_short_help = true)]
    pub(crate) max_streams: u32,
    /// HTTP/2 streams that a client may reset before they were looked at; more end the
    /// connection.
    #[arg(long, value_name = "N", default_value = "20", env = "FRAZIL_MAX_RESETS",
          value_parser = number, hide_short_help = true)]
    pub(crate) max_resets: usize,
    /// The longest RESP command with all its arguments.
    #[arg(long, value_name = "BYTES", default_value = "262144", env = "FRAZIL_MAX_COMMAND_BYTES",
          value_parser = bytes, hide_short_help = true)]
    pub(crate) max_command_bytes: usize,
    /// RESP commands of one connection that are answered before others have their turn.
    #[arg(long, value_name = "N", default_value = "1000", env = "FRAZIL_MAX_PIPELINE",
          value_parser = number, hide_short_help = true)]
    pub(crate) max_pipeline: usize,
    /// How long a TLS handshake may take, and the header of a proxy before it.
    #[arg(long, value_name = "D", default_value = "5s", env = "FRAZIL_HANDSHAKE_TIMEOUT",
          value_parser = duration, hide_short_help = true)]
    pub(crate) handshake_timeout: Duration,
    /// How long a RESP or gRPC connection may take to show a key, where one is needed.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_AUTH_TIMEOUT",
          value_parser = duration, hide_short_help = true)]
    pub(crate) auth_timeout: Duration,
    /// How long the head of a request may take from its first byte on, and half a RESP command.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_HEAD_TIMEOUT",
          value_parser = duration, hide_short_help = true)]
    pub(crate) head_timeout: Duration,
    /// How long the body of a request may take.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_BODY_TIMEOUT",
          value_parser = duration, hide_short_help = true)]
    pub(crate) body_timeout: Duration,
    /// How long a client may take to read an answer.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_WRITE_TIMEOUT",
          value_parser = duration, hide_short_help = true)]
    pub(crate) write_timeout: Duration,
    /// How long an HTTP connection is kept without a request.
    #[arg(long, value_name = "D", default_value = "1m", env = "FRAZIL_IDLE_TIMEOUT",
          value_parser = duration, hide_short_help = true)]
    pub(crate) idle_timeout: Duration,
    /// How long a RESP connection is kept without a command; 0s for as long as the client likes.
    #[arg(long, value_name = "D", default_value = "0s", env = "FRAZIL_RESP_IDLE_TIMEOUT",
          value_parser = duration_or_none, hide_short_help = true)]
    pub(crate) resp_idle_timeout: Duration,
    /// How long a request that asks the store may take.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_REQUEST_TIMEOUT",
          value_parser = duration, hide_short_help = true)]
    pub(crate) request_timeout: Duration,
}

impl LimitArgs {
    /// As the server knows them.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.max_count = self.max_count;
        limits.max_wait = self.max_wait;
        limits.max_body_bytes = self.max_body_bytes;
        limits.max_head_bytes = self.max_head_bytes;
        limits.max_uri_bytes = self.max_uri_bytes;
        limits.max_headers = self.max_headers;
        limits.max_waiting = self.max_waiting;
        limits.max_in_flight = self.max_in_flight;
        limits.max_connections = self.max_connections;
        limits.max_connections_per_peer = self.max_connections_per_peer;
        limits.max_failed_keys = self.max_failed_keys;
        limits.max_streams = self.max_streams;
        limits.max_resets = self.max_resets;
        limits.max_command_bytes = self.max_command_bytes;
        limits.max_pipeline = self.max_pipeline;
        limits.handshake_timeout = self.handshake_timeout;
        limits.auth_timeout = self.auth_timeout;
        limits.head_timeout = self.head_timeout;
        limits.body_timeout = self.body_timeout;
        limits.write_timeout = self.write_timeout;
        limits.idle_timeout = self.idle_timeout;
        limits.resp_idle_timeout = self.resp_idle_timeout;
        limits.request_timeout = self.request_timeout;
        limits
    }
}

fn bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes| (1..=BYTES_MAX).contains(bytes));
    bytes.ok_or_else(|| format!("write a number of bytes from 1 to {BYTES_MAX}"))
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=NUMBER_MAX).contains(number));
    number.ok_or_else(|| format!("write a number from 1 to {NUMBER_MAX}"))
}

/// A duration, or `0s` for none.
pub(super) fn duration_or_none(text: &str) -> Result<Duration, String> {
    match frazil_coord::internal::duration(text) {
        Some(Duration::ZERO) => Ok(Duration::ZERO),
        _ => duration(text).map_err(|why| format!("{why}, or 0s for none")),
    }
}
