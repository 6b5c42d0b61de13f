//! The arguments of `frazil store` and `frazil workers`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use frazil_coord::{Namespace, NamespaceError};

use super::context::context;
use super::verbs::{DrainArgs, ReleaseArgs, RotateArgs};
use super::{LayoutArg, duration, field};

/// Names the store where the flag does not.
pub(crate) const STORE_VARIABLE: &str = "FRAZIL_STORE";

/// Where the workers are leased.
#[derive(Clone, ClapArgs)]
pub(crate) struct PlaceArg {
    /// The store: file:DIRECTORY, static:N, redis://, etcd://, zk:// and others. By default a
    /// directory under the state directory.
    // Parsed later: the parser of the command line repeats what it does not understand, and this
    // may hold a password.
    #[arg(long, value_name = "URL", env = STORE_VARIABLE, hide_env_values = true,
          long_help = "\
The store: file:DIRECTORY, static:N, redis://, etcd://, zk:// and others. By default a directory
under the state directory. `frazil help stores` tells all that a URL can say.")]
    pub(crate) store: Option<String>,
    /// The namespace: those who share it never get the same ID. It is a space of IDs: two
    /// namespaces with the same layout and overlapping workers issue the same IDs.
    #[arg(long, value_name = "NAME", default_value = "default", env = "FRAZIL_NAMESPACE",
          value_parser = namespace)]
    pub(crate) namespace: Namespace,
}

/// The URL may hold a password.
impl fmt::Debug for PlaceArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.store.as_ref().map(|_| "***");
        f.debug_struct("PlaceArg")
            .field("store", &store)
            .field("namespace", &self.namespace)
            .finish()
    }
}

/// Which workers to lease from.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct WorkersArg {
    /// The workers to lease from; the same for all of a namespace. By default all that the layout
    /// has.
    #[arg(long, value_name = "A-B", env = "FRAZIL_WORKERS", value_parser = range)]
    pub(crate) workers: Option<(u32, u32)>,
}

/// What an operator writes must outlast a crash of the store.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct LossArg {
    /// Write although the store may lose it.
    ///
    /// What an operator writes is reported once the store cannot lose it any more. A Redis without
    /// an append-only file, or one that does not say whether it keeps one, may lose it at any
    /// time: then nothing is written without this flag. With it nothing is waited for. No other
    /// store needs it.
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

/// Look at the workers of a namespace, let nodes release them, and repair them.
#[derive(Debug, Subcommand)]
#[command(arg = context().global(true))]
pub(crate) enum WorkersCommand {
    Ls(WorkersLsArgs),
    Watch(WorkersWatchArgs),
    Drain(DrainArgs),
    Rotate(RotateArgs),
    Release(ReleaseArgs),
    Repair(WorkersRepairArgs),
}

/// List who holds which worker.
///
/// Shows every worker that is not free: who holds it or held it last, its token, its horizon
/// (the last time that its holder may stamp), how many seconds are left until then, and its state:
/// held; blocked until its horizon has passed; quarantined; poisoned (its horizon is further
/// ahead than any correct holder can have put it); lost (its record is gone). With --all or --json
/// also those that were used before and are free.
///
/// With --node it says whether that node can be stopped: the exit code is 0 if it holds no worker,
/// and 1 if it holds some or no record has its name.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil workers ls
  frazil workers ls --node web-1
  frazil workers ls --store etcd://10.0.0.1:2379 --json")]
pub(crate) struct WorkersLsArgs {
    /// Only the workers that this node holds, by its name under HOLDER.
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Free workers too.
    #[arg(long, conflicts_with = "node")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the workers as they change, until interrupted.
///
/// On a terminal the list is drawn anew; otherwise each change is a line. If the store is away,
/// that is said, and the list goes on when it is back.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil workers watch
  frazil workers watch --store zk://10.0.0.1 --json")]
pub(crate) struct WorkersWatchArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// Print one JSON object per line for each worker that changed.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lower the horizon of a worker to the last ID that it really issued.
///
/// For a worker that a wrong clock has poisoned. The ID is taken for the truth: if a later one was
/// issued by this worker, that one can be issued again. The worker must not be held.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil workers repair 7 --last-issued 380314777215332352")]
pub(crate) struct WorkersRepairArgs {
    /// The worker.
    #[arg(value_name = "W")]
    pub(crate) worker: u32,
    /// The last ID that the worker issued, proven by your data.
    #[arg(long, value_name = "ID", value_parser = field)]
    pub(crate) last_issued: u64,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) loss: LossArg,
    /// Print the worker's JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Look at a namespace's records, move them, and repair them.
#[derive(Debug, Subcommand)]
#[command(arg = context().global(true))]
pub(crate) enum StoreCommand {
    Init(InitArgs),
    Show(ShowArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Quarantine(QuarantineArgs),
    Repair(RepairArgs),
    ForgetReplica(ForgetReplicaArgs),
}

/// Create a namespace that is known to be new.
///
/// Its first node then need not wait for live holders of a forgotten one to speak up. Never do
/// this with a namespace whose store was wiped, unless you quarantine it before any node starts.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil store init --store redis://127.0.0.1:6379 --namespace orders
  frazil store init --workers 0-511 --window 30m
  frazil store init --store static:7")]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    #[command(flatten)]
    pub(crate) workers: WorkersArg,
    /// The longest time without the store that a node of the namespace may survive: 90s to 60m,
    /// by default 10m. A fixed worker (static:N) has its own.
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) window: Option<Duration>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what a namespace is and what its store promises.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil store show
  frazil store show --store redis://127.0.0.1:6379 --json")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a namespace's records, one JSON object per line, for `store import`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil store export --store redis://old > orders.jsonl
  frazil store import --store etcd://new orders.jsonl")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// For uniformity with the other commands: an export always is JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bring exported records into a namespace. No horizon is ever lowered.
///
/// Workers that were held when they were exported may have gone on since: everything is
/// quarantined for a window then, and until when is said. Poisoned workers are named.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil store import --store etcd://10.0.0.1 orders.jsonl
  frazil store export | frazil store import --store redis://127.0.0.1 -")]
pub(crate) struct ImportArgs {
    /// What `store export` printed; `-` reads stdin.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) loss: LossArg,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let every new tenure of the namespace start after a time.
///
/// To be done after a store was restored from a backup, before nodes use it: whatever was promised
/// since the backup then has passed, and holders that the backup knows and that are not there are
/// forgotten. By default for a window and a little.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil store quarantine --store etcd://10.0.0.1
  frazil store quarantine --adopt --store file:/mnt/new-disk/frazil")]
pub(crate) struct QuarantineArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// For how long from now, as `90s` or `10m`.
    #[arg(long = "for", value_name = "D", value_parser = duration)]
    pub(crate) lasting: Option<Duration>,
    /// Make a copied directory of the file store one of its own. The original must not be used any
    /// more.
    #[arg(long)]
    pub(crate) adopt: bool,
    #[command(flatten)]
    pub(crate) loss: LossArg,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give workers whose record is lost or unreadable a new one.
///
/// It blocks them for a window, in case their holders still run. Poisoned workers are named, and
/// left for `workers repair`; the exit code is 1 then.
///
/// Records without the namespace's meta record get a new one of those too, with the layout, the
/// workers and the window given here, in quarantine for that window, or for an hour if none is
/// given. A meta record that cannot be read must be removed first; the error says how.
///
/// With --wrong-times it only lowers a quarantine that a wrong clock has set. A worker whose horizon is as
/// wrong stays out of use until that time has passed, because it may have issued IDs up to then. While
/// a node with such a clock holds a worker nothing is changed, and the exit code is 4.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil store repair
  frazil store repair --wrong-times --store etcd://10.0.0.1:2379
  frazil store repair --store redis://127.0.0.1 --workers 0-511 --window 10m")]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    #[command(flatten)]
    pub(crate) workers: WorkersArg,
    /// The window that the namespace had, if its meta record is gone.
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) window: Option<Duration>,
    /// Lower a quarantine that a wrong clock has set: one that is further ahead than any window. Where the
    /// store has no clock (etcd, files) this machine's clock must be right.
    #[arg(long, conflicts_with_all = ["workers", "window"])]
    pub(crate) wrong_times: bool,
    #[command(flatten)]
    pub(crate) loss: LossArg,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let no takeover wait any longer for a Redis replica that is gone for good.
///
/// Behind Sentinel and in a cluster, a worker that its holder did not release is used again once
/// every server that could be promoted knows of it. While one of them is lost such takeovers wait,
/// and so do new nodes that need one; running nodes go on. `frazil doctor`, `/readyz?verbose` and
/// the metric frazil_store_replicas_missing name it.
///
/// Say this only of a replica that will never be promoted with what it has: if it were, IDs could
/// be issued twice. All nodes of the namespace heed it, and it outlasts restarts. A replica that
/// comes back is counted again once it is connected to the master.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil store forget-replica 10.0.0.3:6379 --store redis+sentinel://10.0.0.1,10.0.0.2/main")]
pub(crate) struct ForgetReplicaArgs {
    /// The replica, as `frazil doctor` names it.
    #[arg(value_name = "HOST:PORT", required = true)]
    pub(crate) replicas: Vec<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) loss: LossArg,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

fn namespace(text: &str) -> Result<Namespace, NamespaceError> {
    text.parse()
}

fn range(text: &str) -> Result<(u32, u32), String> {
    let ends = text
        .split_once('-')
        .and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    ends.filter(|(first, last)| first <= last)
        .ok_or_else(|| "write the first and the last worker as 0-511".to_owned())
}
