//! What can be typed about the examination.

use std::time::Duration;

use clap::Args as ClapArgs;

use super::serve::Address;
use super::serve::address;
use super::{LayoutArg, PlaceArg, WorkersArg, duration};

/// Check all that a server needs, and say how to mend what is wrong.
///
/// Takes the flags and the environment of `serve`, starts nothing and writes nothing: neither to the
/// store nor to the disk. Every check is made, whatever the others found. Each prints a line: ok,
/// warn or fail, its name and what was found; a line with the fix follows where something is to be
/// mended. What cannot be checked is skipped, with the reason. The exit code is 1 if a check failed;
/// warnings do not count.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil doctor
  frazil doctor --store redis://127.0.0.1:6379 --namespace orders
  frazil doctor --store etcd://10.0.0.1:2379 --server http://127.0.0.1:7780 --json")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) workers: WorkersArg,
    /// The fixed worker number that the server is to have.
    #[arg(long, value_name = "W", env = "FRAZIL_WORKER", conflicts_with_all = ["store", "workers"])]
    pub(crate) worker: Option<u32>,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    /// Without renewal, another node may take the worker over after this.
    #[arg(long, value_name = "D", default_value = "30s", env = "FRAZIL_TTL",
          value_parser = duration)]
    pub(crate) ttl: Duration,
    /// Between two renewals; at most a third of the TTL.
    #[arg(long, value_name = "D", default_value = "10s", env = "FRAZIL_HEARTBEAT",
          value_parser = duration)]
    pub(crate) heartbeat: Duration,
    /// The longest outage of the store to survive.
    #[arg(long, value_name = "D", default_value = "10m", env = "FRAZIL_OUTAGE_BUDGET",
          value_parser = duration)]
    pub(crate) outage_budget: Duration,
    /// Where HTTP is to listen; `off` for nowhere.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7780", env = "FRAZIL_HTTP",
          value_parser = address)]
    pub(crate) http: Address,
    /// Where gRPC is to listen; `off` for nowhere.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7781", env = "FRAZIL_GRPC",
          value_parser = address)]
    pub(crate) grpc: Address,
    /// Where RESP is to listen; `off` for nowhere.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7782", env = "FRAZIL_RESP",
          value_parser = address)]
    pub(crate) resp: Address,
    /// A server that runs, to be examined too, as http://127.0.0.1:7780.
    // Not parsed here: what is not understood is repeated, and this may hold a password.
    #[arg(long, value_name = "URL", env = "FRAZIL_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,
    /// Print one JSON object a line: check, status (ok, warn, fail or skipped), detail, fix.
    #[arg(long)]
    pub(crate) json: bool,
}
