//! What the command line takes.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::jobs_node::JobsNodeArgs;
use crate::store::Kind;

/// Real frazil processes and real stores under faults, and an exact check of every ID.
#[derive(Debug, Parser)]
#[command(name = "storm", version)]
pub(crate) struct Command {
    #[command(subcommand)]
    pub(crate) command: StormCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StormCommand {
    /// Lists the experiments, and the mutants with what catches them
    List,
    /// Plays one experiment, and tells all about it
    Run(RunArgs),
    /// Plays every experiment, hunts every mutant, and prints the scorecard
    Score(ScoreArgs),
    /// Plays a few experiments and mutants, in about three minutes
    Smoke(ScoreArgs),
    /// Hunts every mutant (E01): each must be caught, and a build that breaks nothing must not
    Hunt(HuntArgs),
    /// Plays experiments that chance chooses, for a given time
    Soak(SoakArgs),
    /// Writes to the register of a run, as the command of a leader
    #[command(hide = true)]
    Writer {
        #[arg(long)]
        register: SocketAddr,
    },
    /// A node of jobs that prints every step, and writes through fences
    #[command(hide = true)]
    JobsNode(JobsNodeArgs),
    /// A node that leases as many examples do
    #[command(hide = true)]
    NaiveNode {
        #[arg(long)]
        redis: String,
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        ttl_ms: u64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Which, as `storm list` names them
    #[arg(long, value_name = "E02")]
    pub(crate) scenario: String,
    /// file, redis, etcd or zk
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Kind,
    /// What chance decides is decided by this; random if it is not given
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How much of the experiment: 1 for all its cycles
    #[arg(long, default_value_t = 0.1, value_parser = scale)]
    pub(crate) scale: f64,
    /// A mutant that the nodes are to be; --frazil must be the build of tools/mutants
    #[arg(long)]
    pub(crate) mutant: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// What chance decides is decided by this; random if it is not given
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How much of each experiment: 1 for all its cycles
    #[arg(long, default_value_t = 0.1, value_parser = scale)]
    pub(crate) scale: f64,
    /// The frazil command with the patches of storm/mutants, which tools/mutants builds
    #[arg(long, value_name = "FILE", default_value = "target/mutants/build/debug/frazil")]
    pub(crate) mutants: PathBuf,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct HuntArgs {
    /// Which mutants, as `storm list` names them; all if none is named
    #[arg(value_name = "MUTANT")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) score: ScoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SoakArgs {
    /// For how long, in minutes; what has begun is played to its end
    #[arg(long, default_value_t = 30)]
    pub(crate) minutes: u64,
    /// What chance decides is decided by this; random if it is not given
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How much of each experiment: 1 for all its cycles
    #[arg(long, default_value_t = 0.1, value_parser = scale)]
    pub(crate) scale: f64,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The frazil command to test
    #[arg(long, value_name = "FILE", default_value = "target/release/frazil")]
    pub(crate) frazil: PathBuf,
    /// Where reports and logs go
    #[arg(long, value_name = "DIRECTORY", default_value = "target/storm")]
    pub(crate) out: PathBuf,
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    match scale > 0.0 && scale <= 10.0 {
        true => Ok(scale),
        false => Err("more than 0, at most 10".to_owned()),
    }
}
