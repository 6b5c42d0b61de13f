//! What can be typed about API keys.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::time;

/// Make, list, replace and revoke the API keys of a server.
///
/// A file of keys holds no key, only the SHA-256 of each: who reads it can let nobody in. A running
/// server reads it again on SIGHUP.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    New(KeyNewArgs),
    Ls(KeyLsArgs),
    Rotate(KeyRotateArgs),
    Revoke(KeyRevokeArgs),
}

/// Make a new key and print it: this once, nobody can show it again.
///
/// With --file its entry is added to the file of keys; without, the entry is shown on stderr.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  umask 077; frazil key new --name orders --role ids --file keys.toml > orders.key
  frazil key new --name grafana --role read --expires 2027-01-01T00:00:00Z --file keys.toml
  frazil key new --name shop --role ids --scope orders --ids-per-second 10000 --file keys.toml")]
pub(crate) struct KeyNewArgs {
    /// Whose key it is; shown in the log.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// What it may do; may be given several times.
    #[arg(long = "role", value_name = "ROLE", value_enum, required = true, value_delimiter = ',')]
    pub(crate) roles: Vec<RoleArg>,
    /// A scope it may name; may be given several times. Without it all, and none at all.
    #[arg(long = "scope", value_name = "S", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// How many Ids it may have in a second.
    #[arg(long, value_name = "N", value_parser = quota)]
    pub(crate) ids_per_second: Option<NonZeroU32>,
    /// When it ends, as RFC 3339 or Unix milliseconds. By default never.
    #[arg(long, value_name = "T", value_parser = time)]
    pub(crate) expires: Option<i64>,
    /// The file of keys to add it to; created if it is not there.
    #[arg(long, value_name = "FILE", env = "FRAZIL_KEYS")]
    pub(crate) file: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the keys of a file: ids, names, roles, quotas and when they end.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil key ls --file keys.toml")]
pub(crate) struct KeyLsArgs {
    #[command(flatten)]
    pub(crate) file: KeyFileArg,
    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a new key with the rights of another, which ends after a while.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil key rotate 1a2b3c4d --grace 24h --file keys.toml > orders.key")]
pub(crate) struct KeyRotateArgs {
    /// The id of the old one, as `key ls` shows it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// When the new one ends, as RFC 3339 or Unix milliseconds; needed if the old one has an end.
    #[arg(long, value_name = "T", value_parser = time)]
    pub(crate) expires: Option<i64>,
    /// How long the old one still works, as `0s`, `24h` or up to `8760h`.
    #[arg(long, value_name = "D", default_value = "24h", value_parser = grace)]
    pub(crate) grace: Duration,
    #[command(flatten)]
    pub(crate) file: KeyFileArg,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove a key from a file.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil key revoke 1a2b3c4d --file keys.toml && systemctl reload frazil")]
pub(crate) struct KeyRevokeArgs {
    /// The key's id, as `key ls` shows it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) file: KeyFileArg,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyFileArg {
    /// The file of keys.
    #[arg(long = "file", value_name = "FILE", env = "FRAZIL_KEYS")]
    pub(crate) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// Have Ids issued.
    Ids,
    /// Look: the cluster and the metrics.
    Read,
    /// Look, and drain, rotate and release.
    Admin,
}

/// A year: a key that shall live longer needs no end.
const GRACE_MAX: Duration = Duration::from_hours(8760);

fn grace(text: &str) -> Result<Duration, String> {
    let valid = frazil_coord::duration(text).filter(|grace| *grace <= GRACE_MAX);
    valid.ok_or_else(|| {
        "write whole numbers with ms, s, m or h (10s, 1m30s), from 0s to 8760h".to_owned()
    })
}

fn quota(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "write a whole number from 1 to 4294967295".to_owned())
}
