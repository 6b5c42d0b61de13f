//! The arguments of verbs that make nodes release workers.

use std::time::Duration;

use clap::Args as ClapArgs;

use super::{PlaceArg, ServerArg, duration};

/// Let a node release all its workers before it is stopped.
///
/// The node takes no new clients, finishes what it has, and releases its workers. It is safe to
/// stop it when this ends with 0: the store shows that it holds no worker any more.
///
/// The node's address is found in the store: that of its --admin listener, or else what it
/// advertises, or else where it listens. With --server no store is needed, and the server is taken
/// at its word unless a store is named.
///
/// Exit codes: 1 if it still holds workers when the patience ends, or there is no such node; 3 if
/// it cannot be reached.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil workers drain web-1 --store etcd://10.0.0.1:2379
  frazil workers drain --server https://10.0.0.7:7780 --ca ca.pem --key-file operator.key")]
pub(crate) struct DrainArgs {
    #[command(flatten)]
    pub(crate) target: TargetArg,
    /// How long the node may take, as `500ms`, `30s` or `10m`.
    #[arg(long, value_name = "D", default_value = "60s", value_parser = duration,
          env = "FRAZIL_PATIENCE")]
    pub(crate) patience: Duration,
    /// Print one JSON object: node, state, released.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Move a node to other workers while it issues.
///
/// For each worker that the node holds, or the one of --worker, it leases another, goes on with
/// that, and releases the old one: no request fails. If there are too few free workers nothing is
/// changed.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil workers rotate web-1 --store etcd://10.0.0.1:2379
  frazil workers rotate --server http://127.0.0.1:7780 --worker 7")]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    pub(crate) target: TargetArg,
    /// Only this worker; by default all that the node holds.
    #[arg(long, value_name = "W")]
    pub(crate) worker: Option<u32>,
    /// How long the node may take, as `500ms`, `30s` or `10m`.
    #[arg(long, value_name = "D", default_value = "60s", value_parser = duration,
          env = "FRAZIL_PATIENCE")]
    pub(crate) patience: Duration,
    /// Print one JSON object: node, moved.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let the node that holds a worker release it, and go on with another.
///
/// The holder is found in the store, or named with --server.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil workers release 7 --store redis://127.0.0.1:6379
  frazil workers release 7 --token 1794745654763 --server http://127.0.0.1:7780")]
pub(crate) struct ReleaseArgs {
    /// The worker.
    #[arg(value_name = "W")]
    pub(crate) worker: u32,
    /// Only if it is still held with this token.
    #[arg(long, value_name = "T")]
    pub(crate) token: Option<u64>,
    #[command(flatten)]
    pub(crate) server: ServerArg,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// How long the node may take, as `500ms`, `30s` or `10m`.
    #[arg(long, value_name = "D", default_value = "60s", value_parser = duration,
          env = "FRAZIL_PATIENCE")]
    pub(crate) patience: Duration,
    /// Print one JSON object: node, moved.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A node: by its name in the store, or by its address.
#[derive(Debug, ClapArgs)]
pub(crate) struct TargetArg {
    /// The node's name, as `workers ls` shows it under HOLDER.
    #[arg(value_name = "NODE", required_unless_present = "server")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArg,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
}
