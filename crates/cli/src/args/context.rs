//! The arguments of `frazil context`, and the one that names a context to other commands.

use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args as ClapArgs, Subcommand};

/// Names the context where the flag does not.
const CONTEXT_VARIABLE: &str = "FRAZIL_CONTEXT";

const PRECEDENCE: &str = "\
What is said in several places is taken from the first of these that says it:
  1. flags: --server, --store, --namespace, --key-file, --ca, --cert, --cert-key
  2. --context NAME; the variables of those flags, and FRAZIL_KEY, are not looked at then
  3. the variables: FRAZIL_SERVER, FRAZIL_STORE, FRAZIL_KEY_FILE and so on, and FRAZIL_KEY
  4. the context that FRAZIL_CONTEXT names
  5. the context in use
  6. the default: a store under the state directory of this machine

A context's key is never sent to a server that a flag or a variable names, and FRAZIL_KEY never to
the server of a context that --context names.

Which commands take what:
  next             the server; the store if there is none
  workers, store   the store and its namespace
  elect, jobs      the same; jobs demo only if --context names it
  key              the same, for --keys store
  workers drain, rotate, release
                   also the key and the certificates, for the node that the store names
serve, config, doctor and bench are about this machine, and take none.";

/// Name clusters, and choose the one that other commands ask.
///
/// A context is a name for where a cluster is: its server, its store and namespace, and the files with the
/// key and the certificates. Contexts are kept in $XDG_CONFIG_HOME/frazil/contexts.toml, by default
/// ~/.config/frazil/contexts.toml. No key and no password is in it, only the names of files that have
/// them.
#[derive(Debug, Subcommand)]
#[command(after_help = PRECEDENCE)]
pub(crate) enum ContextCommand {
    Add(Box<ContextAddArgs>),
    Use(ContextUseArgs),
    Ls(ContextLsArgs),
    Rm(ContextRmArgs),
}

/// Name a cluster.
///
/// Nothing is asked: whether the cluster is there shows when it is used. Names of files are kept whole, so that
/// they mean the same in every directory.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  frazil context add prod --server https://ids.example:7780 --ca ca.pem --key-file prod.key --use
  frazil context add orders --store etcd://10.0.0.1:2379 --namespace orders
  frazil context add cache --store 'redis://app@10.0.0.7?password_file=/etc/frazil/redis.password'",
          group(ArgGroup::new("where").args(["server", "store"]).multiple(true).required(true)))]
pub(crate) struct ContextAddArgs {
    /// The name: letters, digits, '-', '_' and '.'.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The server to ask, as http://127.0.0.1:7780 or https://HOST:PORT.
    // Parsed later, as the store: the parser of the command line repeats what it does not understand.
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The store, without a password.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The namespace in the store.
    #[arg(long, value_name = "NAME", requires = "store")]
    pub(crate) namespace: Option<String>,
    /// The file with the API key. The key itself is not copied.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Whom to trust with https, instead of the system's authorities: a file with certificates.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Our own certificate, where the server asks for one.
    #[arg(long, value_name = "FILE", requires = "cert_key")]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of --cert.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) cert_key: Option<PathBuf>,
    /// Put it in the place of a context with the same name.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Put it into use too.
    #[arg(long = "use")]
    pub(crate) select: bool,
}

/// The URLs may hold passwords, which are refused.
impl std::fmt::Debug for ContextAddArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextAddArgs").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Put a context into use, for all commands that name no other.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil context use prod
  frazil context use --none")]
pub(crate) struct ContextUseArgs {
    /// The context.
    #[arg(value_name = "NAME", required_unless_present = "none")]
    pub(crate) name: Option<String>,
    /// Let none be in use.
    #[arg(long, conflicts_with = "name")]
    pub(crate) none: bool,
}

/// List the contexts; a star marks the one in use.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil context ls
  frazil context ls --json")]
pub(crate) struct ContextLsArgs {
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove a context. The cluster is not asked, and the files that it names stay.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil context rm staging")]
pub(crate) struct ContextRmArgs {
    /// The context.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Which cluster a command is about. Read before all else, since it decides what other arguments are by default.
pub(super) fn context() -> Arg {
    let help =
        "The cluster, by the name that `frazil context add` gave it; see `frazil help context`";
    Arg::new("context").long("context").value_name("NAME").env(CONTEXT_VARIABLE).help(help)
}
