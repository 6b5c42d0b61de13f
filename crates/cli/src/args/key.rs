//! The arguments of `frazil key`.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{ArgGroup, Args as ClapArgs, Subcommand, ValueEnum};
use frazil_server::keys::KeySource;

use super::context::context;
use super::{LossArg, PlaceArg, time};

/// Make, list, replace and revoke the API keys of a server.
///
/// The list of keys holds no key, only the SHA-256 of each: who reads it can let nobody in. It is in a
/// file (--keys FILE), which a running server reads again on SIGHUP, or in the namespace's store
/// (--keys store), where every server sees a change within a second.
#[derive(Debug, Subcommand)]
#[command(arg = context().global(true))]
pub(crate) enum KeyCommand {
    New(KeyNewArgs),
    Ls(KeyLsArgs),
    Rotate(KeyRotateArgs),
    Revoke(KeyRevokeArgs),
}

/// Make a new key and print it: this once, nobody can show it again.
///
/// With --keys its entry is added to the list; without, the entry is shown on stderr. With
/// --certificate-subject or --certificate-san a client certificate stands for the key, and there is no
/// text to print unless --with-text asks for one.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  umask 077; frazil key new --name orders --role ids --keys keys.toml > orders.key
  umask 077; frazil key new --name nodes --role peer --keys keys.toml > peer.key
  frazil key new --name grafana --role read --expires 2027-01-01T00:00:00Z --keys keys.toml
  frazil key new --name shop --role ids --scope orders --ids-per-second 10000 --keys keys.toml
  frazil key new --name ops --role admin --keys store --store etcd://10.0.0.1:2379 > ops.key
  frazil key new --name orders --role ids --certificate-subject CN=orders --keys keys.toml")]
#[command(group(ArgGroup::new("certificate").multiple(true)))]
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
    /// How many IDs it may have in a second, of each node. Keys of one name share it.
    #[arg(long, value_name = "N", value_parser = quota)]
    pub(crate) ids_per_second: Option<NonZeroU32>,
    /// How many IDs it may have in a second of all nodes together: each gives its share of it.
    #[arg(long, value_name = "N", value_parser = quota, conflicts_with = "ids_per_second")]
    pub(crate) ids_per_second_cluster: Option<NonZeroU32>,
    /// When it ends, as RFC 3339 or Unix milliseconds. By default never.
    #[arg(long, value_name = "T", value_parser = time)]
    pub(crate) expires: Option<i64>,
    /// The whole subject of a client certificate that stands for the key, as RFC 4514 writes it:
    /// CN=orders,O=Example. Servers need --tls-client-ca.
    #[arg(long, value_name = "SUBJECT", group = "certificate")]
    pub(crate) certificate_subject: Option<String>,
    /// A URI or a DNS name among the alternative names of a client certificate that stands for the
    /// key. Servers need --tls-client-ca.
    #[arg(long, value_name = "NAME", group = "certificate")]
    pub(crate) certificate_san: Option<String>,
    /// Make a text as well for a key that a certificate stands for, and print it.
    #[arg(long, requires = "certificate")]
    pub(crate) with_text: bool,
    /// The list to add it to: a file, which is created if it is not there, or the word store.
    #[arg(long, visible_alias = "file", value_name = "FILE|store", env = "FRAZIL_KEYS",
          value_parser = key_source())]
    pub(crate) keys: Option<KeySource>,
    #[command(flatten)]
    pub(crate) store: KeyStoreArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the keys: ids, names, roles, quotas and when they end.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil key ls --keys keys.toml")]
pub(crate) struct KeyLsArgs {
    #[command(flatten)]
    pub(crate) list: KeyListArg,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a new key with the rights of another, which ends after a while.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil key rotate 1a2b3c4d --grace 24h --keys keys.toml > orders.key")]
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
    pub(crate) list: KeyListArg,
    #[command(flatten)]
    pub(crate) store: KeyStoreArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove a key from the list: it opens nothing any more.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil key revoke 1a2b3c4d --keys keys.toml && systemctl reload frazil
  frazil key revoke 1a2b3c4d --keys store --store etcd://10.0.0.1:2379")]
pub(crate) struct KeyRevokeArgs {
    /// The key's id, as `key ls` shows it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) list: KeyListArg,
    #[command(flatten)]
    pub(crate) store: KeyStoreArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyListArg {
    /// The list of keys: a file, or the word store.
    #[arg(long = "keys", visible_alias = "file", value_name = "FILE|store", env = "FRAZIL_KEYS",
          value_parser = key_source())]
    pub(crate) keys: KeySource,
}

/// What is said of the store that the list is in.
#[derive(Debug, ClapArgs)]
pub(crate) struct KeyStoreArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) loss: LossArg,
}

/// The word `store`, or a file.
pub(super) fn key_source() -> impl TypedValueParser<Value = KeySource> {
    PathBufValueParser::new().map(KeySource::typed)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// Have IDs issued.
    Ids,
    /// Forward requests for IDs of strict scopes: for nodes, see --peer-key-file of frazil serve.
    Peer,
    /// Look: the cluster and the metrics.
    Read,
    /// Look, and drain, rotate and release.
    Admin,
}

/// A year: a key that shall live longer needs no end.
const GRACE_MAX: Duration = Duration::from_hours(8760);

fn grace(text: &str) -> Result<Duration, String> {
    let valid = frazil_coord::internal::duration(text).filter(|grace| *grace <= GRACE_MAX);
    valid.ok_or_else(|| {
        "write whole numbers with ms, s, m or h (10s, 1m30s), from 0s to 8760h".to_owned()
    })
}

fn quota(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "write a whole number from 1 to 4294967295".to_owned())
}
