//! The command line. The help, the man pages and the completions all come from here.

mod audit;
mod bench;
mod config;
mod context;
mod doctor;
mod elect;
mod jobs;
mod key;
mod serve;
mod server;
mod store;
mod verbs;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;
use frazil_id::{Format, Layout, rfc3339};

pub(crate) use self::audit::AuditArgs;
pub(crate) use self::bench::{
    AcceptArg, BenchArgs, BenchCommand, ClockArg, CompareArgs, LAYOUT_VARIABLE, ProtocolArg,
};
pub(crate) use self::config::{ConfigCheckArgs, ConfigCommand, ConfigExampleArgs, ConfigShowArgs};
pub(crate) use self::context::{ContextAddArgs, ContextCommand, ContextLsArgs, ContextUseArgs};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::elect::{
    ElectArgs, ElectCommand, ElectForgetArgs, ElectGuardArgs, ElectLsArgs, ElectRunArgs,
    ElectWorkArgs, TermsArg,
};
pub(crate) use self::jobs::{JobsCommand, JobsDemoArgs, JobsLsArgs};
pub(crate) use self::key::{
    KeyCommand, KeyLsArgs, KeyNewArgs, KeyRevokeArgs, KeyRotateArgs, KeyStoreArgs, RoleArg,
};
pub(crate) use self::serve::{CONFIG_VARIABLE, RollbackArg, ServeArgs};
pub(crate) use self::server::{ServerArg, TrustArg};
pub(crate) use self::store::{
    ExportArgs, ForgetReplicaArgs, ImportArgs, InitArgs, LossArg, PlaceArg, QuarantineArgs,
    RepairArgs, STORE_VARIABLE, ShowArgs, StoreCommand, WorkersArg, WorkersCommand, WorkersLsArgs,
    WorkersRepairArgs, WorkersWatchArgs,
};
pub(crate) use self::verbs::{DrainArgs, ReleaseArgs, RotateArgs, TargetArg};

/// IDs that one `next` prints at the most: 40 minutes at the default layout's cap. Whoever asks
/// for more has mistyped, or wants the library.
pub(crate) const COUNT_MAX: u64 = 10_000_000_000;
/// A day: a longer measurement is a mistyped unit.
const DURATION_MAX: Duration = Duration::from_hours(24);

const EXAMPLES: &str = "\
Examples:
  frazil serve --dev                          an ID server that leaves nothing behind
  frazil next -n 3                            three IDs, without a server
  frazil decode 380832248485584896            when and where an ID was issued
  frazil elect nightly --every 24h -- ./report.sh   a job that runs on one machine
  frazil doctor                               is everything as it should be?

`frazil help COMMAND` tells everything about a command, `frazil help stores` and `frazil help layouts` about those.";

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the answer is \"no\": a check failed
  2  usage or configuration; a password, a certificate or a permission is wrong
  3  a store, the network or the output is unavailable
  4  refused for safety: clock, lease, quarantine
  75  the leadership was lost (elect)
  124  nobody was elected in time (elect --wait)
  130, 143  ended by SIGINT or SIGTERM, after the worker was released";

/// Unique, time-ordered 64-bit IDs.
#[derive(Debug, Parser)]
#[command(name = "frazil", version, propagate_version = true, after_long_help = after_long_help())]
#[command(disable_help_subcommand = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<ServeArgs>),
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(subcommand)]
    Context(ContextCommand),
    Next(NextArgs),
    Decode(DecodeArgs),
    Encode(EncodeArgs),
    Layout(LayoutArgs),
    Audit(AuditArgs),
    Bench(Box<BenchArgs>),
    #[command(subcommand)]
    Workers(WorkersCommand),
    #[command(subcommand)]
    Store(StoreCommand),
    #[command(subcommand)]
    Key(KeyCommand),
    Elect(Box<ElectArgs>),
    #[command(hide = true)]
    ElectGuard(ElectGuardArgs),
    #[command(hide = true)]
    ElectWork(ElectWorkArgs),
    #[command(subcommand)]
    Jobs(JobsCommand),
    Doctor(Box<DoctorArgs>),
    Errors(ErrorsArgs),
    Help(HelpArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

fn after_long_help() -> String {
    format!("{EXAMPLES}\n\n{EXIT_CODES}")
}

/// Print new IDs, one per line.
///
/// IDs increase strictly. A worker number is leased from the store, used and released, so that
/// nobody else has it meanwhile, nor its times ever after. By default the store is a directory
/// under the state directory ($FRAZIL_STATE_DIR, $XDG_STATE_HOME/frazil or ~/.local/state/frazil),
/// which the processes of one machine share.
///
/// With --server, or with a context that names a server (`frazil help context`), a running server is asked, and no worker
/// is leased.
///
/// With --worker no store is used: nobody but you sees to it that no other process uses that
/// worker number at the same time; processes that use it one after the other repeat nothing as
/// long as the clock does not go back in between.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil next
  frazil next -n 1000 --format base62
  frazil next -n 3 --store redis://127.0.0.1:6379
  frazil next --store file:/var/lib/frazil --patience 5s
  frazil next -n 10 --server http://127.0.0.1:7780
  frazil next -n 5 --worker 3 --layout discord --json",
          group(ArgGroup::new("leasing").args(["store", "worker", "workers"]).multiple(true)
              .conflicts_with("server")),
          arg = context::context())]
pub(crate) struct NextArgs {
    /// How many IDs to print, up to 10,000,000,000.
    #[arg(short = 'n', long, default_value = "1", value_name = "N", value_parser = count)]
    pub(crate) count: u64,
    #[command(flatten)]
    pub(crate) server: ServerArg,
    /// A scope that the server declares.
    #[arg(long, value_name = "S")]
    pub(crate) scope: Option<String>,
    /// The worker number to put into the IDs, without any store.
    #[arg(long, value_name = "W", env = "FRAZIL_WORKER", value_parser = field,
          conflicts_with_all = ["workers", "namespace"])]
    pub(crate) worker: Option<u64>,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) workers: WorkersArg,
    /// How long to wait for a worker, as `500ms`, `30s` or `10m`.
    ///
    /// While all are held one may be released at any moment; a namespace in quarantine is waited
    /// for if it ends within that time, and refused at once if it does not.
    #[arg(long, value_name = "D", default_value = "30s", value_parser = duration,
          env = "FRAZIL_PATIENCE")]
    pub(crate) patience: Duration,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
    /// Print one JSON object per line: id, time, worker, and the token of the lease (null without a
    /// store).
    #[arg(long)]
    pub(crate) json: bool,
}

/// Decode IDs: their time, worker and sequence.
///
/// Prints one line per ID. What is not an ID of the layout is reported on stderr; the others
/// are printed all the same, and the exit code is 2.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil decode --layout discord 175928847299117063
  frazil next -n 1000 --worker 7 | frazil decode --json -
  curl -s -X POST http://127.0.0.1:7780/ids | frazil decode -
  frazil decode 0x549049A0C802000
  frazil decode --between 2026-01-01T00:00:00Z 2026-02-01T00:00:00Z")]
pub(crate) struct DecodeArgs {
    /// IDs; `-` reads them from stdin, one per line, or JSON objects with `id` or `ids`.
    ///
    /// Hexadecimal digits may have any case and begin with 0x.
    #[arg(
        value_name = "ID",
        allow_negative_numbers = true,
        required_unless_present = "between",
        conflicts_with = "between"
    )]
    pub(crate) ids: Vec<String>,
    /// Print the first and the last ID that can have been issued from FROM until before TO.
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], value_parser = time)]
    pub(crate) between: Option<Vec<i64>>,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Put an ID together.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil encode --time 2026-01-01T00:00:00Z --worker 7 --sequence 0
  frazil encode --layout discord --time 1462015105796 --part worker=1 --part process=0 --sequence 7")]
pub(crate) struct EncodeArgs {
    /// The time, as RFC 3339 or Unix milliseconds; rounded down to a tick.
    #[arg(long, value_name = "T", value_parser = time, allow_negative_numbers = true)]
    pub(crate) time: i64,
    /// The whole worker number.
    #[arg(long, value_name = "W", default_value = "0", conflicts_with = "part",
          value_parser = field)]
    pub(crate) worker: u64,
    /// A named part of the worker; may be given for each part.
    #[arg(long, value_name = "NAME=N", value_parser = part)]
    pub(crate) part: Vec<(String, u64)>,
    /// The counter within the tick.
    #[arg(long, value_name = "S", default_value = "0", value_parser = field)]
    pub(crate) sequence: u64,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
    /// Print the ID's JSON object, as `decode --json` does.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what a layout holds, how long it lasts, and where its bits are.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil layout discord
  frazil layout 'time:41 region:3 node:7 sequence:12 @2024-01-01T00:00:00Z tick:1ms'")]
pub(crate) struct LayoutArgs {
    /// A layout's name or text.
    #[arg(value_name = "LAYOUT", default_value = "frazil", env = "FRAZIL_LAYOUT",
          value_parser = layout)]
    pub(crate) layout: Layout,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what an error means and what to do about it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil errors
  frazil errors HORIZON_REACHED")]
pub(crate) struct ErrorsArgs {
    /// Its name, as answers and logs have it. Without it all are listed.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show everything about a command, or about stores or layouts.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil help serve
  frazil help workers drain
  frazil help stores
  frazil help layouts")]
pub(crate) struct HelpArgs {
    /// A command's words, or `stores` or `layouts`.
    #[arg(value_name = "COMMAND|TOPIC")]
    pub(crate) words: Vec<String>,
}

/// Print a completion script for a shell.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  frazil completions bash > /etc/bash_completion.d/frazil")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Print the manual page, or write the pages of all commands.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil man | man -l -
  frazil man --dir /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write every command's page into this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct LayoutArg {
    /// The layout of the IDs: frazil, twitter, discord, instagram, sonyflake, mastodon, js53, or
    /// a layout's text.
    #[arg(long, value_name = "L", default_value = "frazil", env = "FRAZIL_LAYOUT",
          value_parser = layout)]
    pub(crate) layout: Layout,
}

#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct FormatArg {
    /// The form the IDs are written in: decimal, hex, base32, base62, base32-sortable or
    /// base62-sortable.
    #[arg(long, value_name = "F", default_value = "decimal", value_parser = format)]
    pub(crate) format: Format,
}

fn layout(text: &str) -> Result<Layout, frazil_id::LayoutError> {
    text.parse()
}

fn format(text: &str) -> Result<Format, frazil_id::UnknownFormat> {
    text.parse()
}

fn count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
    count.ok_or_else(|| format!("ask for 1 to {COUNT_MAX} IDs"))
}

fn time(text: &str) -> Result<i64, String> {
    if let Ok(unix_ms) = text.parse() {
        return Ok(unix_ms);
    }
    let instant: Result<rfc3339::Instant, _> = text.parse();
    instant
        .map(rfc3339::Instant::unix_ms)
        .map_err(|error| format!("{error}, or as Unix milliseconds"))
}

/// The value of a field; whether it fits, the layout knows.
fn field(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        "write a whole number from 0 to what `frazil layout` says the field holds".to_owned()
    })
}

fn part(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=NUMBER")?;
    Ok((name.to_owned(), field(value)?))
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let valid = frazil_coord::internal::duration(text)
        .filter(|duration| !duration.is_zero() && *duration <= DURATION_MAX);
    valid.ok_or_else(|| {
        "write whole numbers with ms, s, m or h (10s, 1m30s), from 1ms to 24h".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_not_shown_where_it_may_hold_a_password() {
        let url = "redis://user:canary@127.0.0.1:6379";
        for words in [
            &["serve"][..],
            &["doctor"],
            &["next"],
            &["config", "show"],
            &["workers", "ls"],
            &["store", "show"],
            &["workers", "drain", "node"],
            &["elect", "name", "--observe"],
            &["elect", "run", "ls", "--observe"],
            &["elect", "ls"],
            &["elect", "forget", "name"],
            &["jobs", "ls"],
            &["jobs", "demo"],
        ] {
            let line = [&["frazil"][..], words, &["--store", url]].concat();
            let args = Args::try_parse_from(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"));
            let shown = format!("{args:?}");
            assert!(shown.contains("PlaceArg") && !shown.contains("canary"), "{shown}");
        }
    }
}
