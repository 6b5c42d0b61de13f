//! The arguments of `frazil jobs`.

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::context::context;
use super::{PlaceArg, duration};

/// Nodes of a demonstration: more do not fit a screen.
const NODES_MAX: u64 = 9;
/// Jobs of a demonstration: each is an election.
const JOBS_MAX: u64 = 200;

/// See which job runs where, and a demonstration of how jobs move.
#[derive(Debug, Subcommand)]
#[command(arg = context().global(true))]
pub(crate) enum JobsCommand {
    Ls(JobsLsArgs),
    Demo(Box<JobsDemoArgs>),
}

/// List which job runs where.
///
/// Shows every job that was ever run, of all applications: who runs it, with which token, since
/// when, and how many seconds its leadership lasts unless it is renewed (none where it ends with the
/// process).
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil jobs ls --store etcd://10.0.0.1:2379
  frazil jobs ls --app billing --json")]
pub(crate) struct JobsLsArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// Only the jobs of this application.
    #[arg(long, value_name = "APP")]
    pub(crate) app: Option<String>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run jobs on some nodes and restart one node after the other.
///
/// All nodes are in this process, each with its own connection to the store, by default a temporary
/// directory. On a terminal they are drawn as jobs move: r restarts the nodes one after the other, q
/// ends. With --headless it restarts them once and prints, for each of the restarts and for all, how
/// long jobs were without a leader.
///
/// A gap is the time from when a job has stopped on one node until it was started on another.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil jobs demo
  frazil jobs demo --nodes 5 --jobs 100 --store redis://127.0.0.1:6379
  frazil jobs demo --headless --store zk://127.0.0.1:2181")]
pub(crate) struct JobsDemoArgs {
    /// How many nodes, up to 9.
    #[arg(long, value_name = "M", default_value = "3",
          value_parser = clap::value_parser!(u64).range(1..=NODES_MAX))]
    pub(crate) nodes: u64,
    /// How many jobs, up to 200: the same for all nodes.
    #[arg(long, value_name = "N", default_value = "29",
          value_parser = clap::value_parser!(u64).range(1..=JOBS_MAX))]
    pub(crate) jobs: u64,
    #[command(flatten)]
    pub(crate) place: PlaceArg,
    /// The application: what the jobs are called in the store.
    #[arg(long, value_name = "APP", default_value = "demo")]
    pub(crate) app: String,
    /// Draw nothing: restart every node once, and print one JSON object for each restart and one for
    /// all.
    #[arg(long)]
    pub(crate) headless: bool,
    /// Go on restarting for this long; without --headless end after it.
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
}
