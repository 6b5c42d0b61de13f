//! The arguments of `frazil doctor`.

use clap::Args as ClapArgs;

use super::{ServeArgs, ServerArg};

/// Check all that a server needs, and say how to repair what is wrong.
///
/// Takes the flags, the environment and the file of `serve`, starts nothing and writes nothing:
/// neither to the store nor to the disk. Every check is made, whatever the others found. Each prints
/// a line: ok, warn or fail, its name and what was found; a line with the fix follows where
/// something is to be repaired. What cannot be checked is skipped, with the reason. The exit code is 1
/// if a check failed; warnings do not count.
///
/// With --server a server that runs is examined too.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil doctor
  frazil doctor --config /etc/frazil/frazil.toml
  frazil doctor --store redis://127.0.0.1:6379 --namespace orders
  frazil doctor --store etcd://10.0.0.1:2379 --server https://127.0.0.1:7780 --ca ca.pem --json")]
pub(crate) struct DoctorArgs {
    /// Print one JSON object per line: check, status (ok, warn, fail or skipped), detail, fix.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten, next_help_heading = "A server that runs")]
    pub(crate) server: ServerArg,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}
