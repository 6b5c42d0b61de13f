//! The arguments of `frazil config`.

use clap::{Args as ClapArgs, Subcommand};

use super::ServeArgs;

/// Check, show and explain the configuration of a server.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    Check(Box<ConfigCheckArgs>),
    Show(Box<ConfigShowArgs>),
    Example(ConfigExampleArgs),
}

/// Check the configuration that `frazil serve` would start with.
///
/// Reports every problem of the file, the environment and the flags at once, each with its place and
/// what to write. Exit code 1 if there is one. Nothing is started, and no store is asked.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil config check --config /etc/frazil/frazil.toml
  frazil config check --config frazil.toml --offline --json")]
pub(crate) struct ConfigCheckArgs {
    /// Do not look for the files that the configuration names: certificates, keys, passwords.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print one JSON object for each problem.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

/// Show every setting that `frazil serve` would start with, as a configuration file.
///
/// Passwords are shown as ***.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil config show --origin
  frazil config show --config /etc/frazil/frazil.toml --json")]
pub(crate) struct ConfigShowArgs {
    /// Say behind each value where it comes from.
    #[arg(long)]
    pub(crate) origin: bool,
    /// Print one JSON object for each setting.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

/// Print a configuration file with every key, its default and its meaning.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil config example > frazil.toml")]
pub(crate) struct ConfigExampleArgs {}
