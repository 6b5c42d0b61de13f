//! The arguments of `frazil elect`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use frazil::election::Settings;

use super::context::context;
use super::{PlaceArg, duration};

const ELECT_HELP: &str = "\
Examples:
  frazil elect nightly --every 24h -- ./report.sh      # from cron, on every machine
  frazil elect billing --store etcd://10.0.0.1:2379 --ttl 5s -- ./worker --fence-from-env
  frazil elect migrate --once -- ./migrate || echo 'somebody else does'
  frazil elect deploy --wait 30s --hold 10m -- ./deploy.sh
  frazil elect billing --observe --json
  frazil elect billing --observe --once
  frazil elect ls --store etcd://10.0.0.1:2379
  frazil elect forget migrate

An election called ls, forget, run or help is reached as frazil elect run NAME.

The command finds FRAZIL_FENCE (the fencing token: pass it on with every write), FRAZIL_ELECTION and
FRAZIL_INSTANCE in its environment.

The settings are also taken from LEADER_ELECTION_LOCK_TTL, LEADER_ELECTION_HEARTBEAT_INTERVAL,
LEADER_ELECTION_RETRY_INTERVAL, LEADER_ELECTION_INSTANCE_ID and LEADER_ELECTION_HOSTNAME, where neither
the flag nor the FRAZIL_ variable is given.

Exit codes:
  0    the command succeeded; with --every also: it has been run in this period
  75   the leadership was lost, and the command was stopped
  124  with --wait: not elected in time
  1    with --once: somebody else leads, or nobody does
  126, 127  the command cannot be run, or is not there
  else the command's own; 128 and the number of the signal that ended it";

/// Run a command while leader of an election.
///
/// Waits until elected, runs the command, and resigns when it has ended: the next candidate starts
/// at once. SIGINT, SIGTERM and SIGHUP are passed on to the command, which has the grace to end.
///
/// If the leadership is lost, or is about to be because the store cannot be reached, the command and
/// all processes of its group get SIGTERM, and SIGKILL before anybody else can be elected. They are
/// killed as well if this process is, or is stopped for longer than its leadership lasts. A command
/// that is frozen along with this process can wake up late all the same: only what it writes to can
/// refuse that, by the token.
#[derive(Debug, ClapArgs)]
#[command(after_help = ELECT_HELP, args_conflicts_with_subcommands = true,
          subcommand_negates_reqs = true, arg = context().global(true))]
pub(crate) struct ElectArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<ElectCommand>,
    #[command(flatten)]
    pub(crate) run: ElectRunArgs,
}

/// What else can be done with elections.
#[derive(Debug, Subcommand)]
pub(crate) enum ElectCommand {
    Ls(ElectLsArgs),
    Forget(ElectForgetArgs),
    /// Run a command while leader of an election: the same as without `run`, for any name.
    #[command(after_help = ELECT_HELP)]
    Run(Box<ElectRunArgs>),
}

/// List the elections of a namespace.
///
/// Shows every election that was ever held and not forgotten, jobs too: who leads it, with which token
/// (of the last leader if nobody leads), since when, when its last leader was last heard of, and how
/// many seconds the leadership lasts unless it is renewed (of the stores, Redis alone tells).
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil elect ls --store etcd://10.0.0.1:2379
  frazil elect ls --json | jq -r 'select(.state == \"free\").election'")]
pub(crate) struct ElectLsArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove what the store knows of an election that is over.
///
/// The election must have no leader: otherwise the exit code is 4. So it is if it had one within the
/// last 20 seconds, whose work may still run; how long to wait is said. If there is no such election
/// the exit code is 1.
///
/// The token of its next leader, should there be one, is larger than all before: the namespace keeps the
/// highest token that was forgotten. What --every remembers is gone: the next candidate runs at once.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil elect forget migrate-2026-11
  frazil elect forget nightly --store redis://127.0.0.1:6379 --namespace jobs")]
pub(crate) struct ElectForgetArgs {
    /// The election.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
}

/// How to be elected, and what the leader runs; or which election to watch.
#[derive(Debug, ClapArgs)]
pub(crate) struct ElectRunArgs {
    /// The election: letters, digits, '.', '_', '-' and ':'.
    // Not there only where a verb is.
    #[arg(value_name = "NAME", required = true)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    #[command(flatten)]
    pub(crate) terms: TermsArg,
    /// How long the command has to end after SIGTERM. By default a quarter of the TTL.
    #[arg(long, value_name = "D", env = "FRAZIL_ELECTION_GRACE", value_parser = duration)]
    pub(crate) grace: Option<Duration>,
    /// Give up with 124 if not elected after this long, the wait for the store included.
    #[arg(long, value_name = "D", conflicts_with_all = ["once", "observe"], requires = "command",
          value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// Lead on for this long after the command has succeeded, so that nobody else runs it meanwhile.
    /// A signal ends that.
    #[arg(long, value_name = "D", conflicts_with = "observe", requires = "command",
          value_parser = period)]
    pub(crate) hold: Option<Duration>,
    /// Run at most once in this time, whoever runs it: if somebody was elected less than this ago, say
    /// who and when and end with 0. The store remembers it. A run that fails counts too. The last
    /// twentieth of the time is waited for: a cron job that comes a little early is not left out.
    #[arg(long, value_name = "D", conflicts_with_all = ["once", "observe"], requires = "command",
          value_parser = period)]
    pub(crate) every: Option<Duration>,
    /// Print the leader, and each one that follows, without being a candidate.
    #[arg(long, conflicts_with = "command")]
    pub(crate) observe: bool,
    /// Do not wait: if somebody else leads, end with 1. Without a command print the leader and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON object per line.
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,
    /// What to run, with its arguments.
    #[arg(value_name = "CMD", last = true, required_unless_present_any = ["observe", "once"])]
    pub(crate) command: Vec<OsString>,
}

/// How an election is held; the same for all candidates of one.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct TermsArg {
    /// How long a leader leads without renewing: one that crashed is replaced after this. By default
    /// 10s.
    #[arg(long, value_name = "D", env = Settings::TTL.name, value_parser = duration)]
    pub(crate) ttl: Option<Duration>,
    /// Between two renewals, at most a third of the TTL. By default three tenths.
    #[arg(long, value_name = "D", env = Settings::HEARTBEAT.name, value_parser = duration)]
    pub(crate) heartbeat: Option<Duration>,
    /// How often a candidate looks, should the store not tell of a change. By default a fifth of the
    /// TTL.
    #[arg(long, value_name = "D", env = Settings::RETRY.name, value_parser = duration)]
    pub(crate) retry: Option<Duration>,
    /// How much longer to wait after a leader that was lost without resigning: for what checks no
    /// token. By default 1s; 0s where every write is fenced.
    #[arg(long, value_name = "D", env = Settings::LOCK_DELAY.name, value_parser = delay)]
    pub(crate) lock_delay: Option<Duration>,
    /// Who this is, for people to read. By default HOST:PID.
    #[arg(long, value_name = "I", env = Settings::INSTANCE.name)]
    pub(crate) instance: Option<String>,
    /// The name of this machine, for people to read. By default its own.
    #[arg(long, value_name = "H", env = Settings::HOST.name)]
    pub(crate) hostname: Option<String>,
}

/// The parent of an elected command: it ends the command if `frazil elect` cannot.
#[derive(Debug, ClapArgs)]
pub(crate) struct ElectGuardArgs {
    /// Whose child this must be.
    #[arg(long, value_name = "PID")]
    pub(crate) parent: i32,
    /// The parent's descriptor of the file that says until when the command may run.
    #[arg(long, value_name = "FD")]
    pub(crate) deadline: i32,
    /// What to run.
    #[arg(value_name = "CMD", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// What becomes the elected command, once it is sure to die with its guard.
#[derive(Debug, ClapArgs)]
pub(crate) struct ElectWorkArgs {
    /// Whose child this must be.
    #[arg(long, value_name = "PID")]
    pub(crate) parent: i32,
    /// What to become.
    #[arg(value_name = "CMD", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// An hour: nobody waits longer for work that checks no token.
const DELAY_MAX: Duration = Duration::from_hours(1);

/// A year.
const PERIOD_MAX: Duration = Duration::from_hours(366 * 24);

fn period(text: &str) -> Result<Duration, String> {
    let valid = frazil_coord::internal::duration(text)
        .filter(|period| (Duration::from_secs(1)..=PERIOD_MAX).contains(period));
    valid.ok_or_else(|| {
        "write whole numbers with ms, s, m or h (1h30m, 24h), from 1s to 8784h".to_owned()
    })
}

fn delay(text: &str) -> Result<Duration, String> {
    let valid = frazil_coord::internal::duration(text).filter(|delay| *delay <= DELAY_MAX);
    valid.ok_or_else(|| {
        "write whole numbers with ms, s, m or h (10s, 1m30s), from 0s to 1h".to_owned()
    })
}
