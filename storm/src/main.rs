//! `storm`: real `frazil` processes and real stores under faults, and an exact check of every Id.
//!
//! It links no code of the server: what it knows of a node is what any client sees.

mod checker;
mod clock;
mod history;
mod http;
mod load;
mod node;
mod register;
mod report;
mod scenario;
mod scenarios;
mod stage;
mod store;
mod verdict;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use report::Report;
use scenario::Scenario;
use stage::Plan;
use store::Kind;

#[derive(Debug, Parser)]
#[command(name = "storm", version, about = "Real frazil processes and real stores under faults")]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists the experiments
    List,
    /// Plays one experiment
    Run(RunArgs),
    /// Writes to the register of a run, as the command of a leader
    #[command(hide = true)]
    Writer {
        #[arg(long)]
        register: SocketAddr,
    },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Which, as `storm list` names them
    #[arg(long, value_name = "E02")]
    scenario: String,
    /// file, redis, etcd or zk
    #[arg(long, value_name = "STORE")]
    store: Kind,
    /// What chance decides is decided by this; random if it is not given
    #[arg(long)]
    seed: Option<u64>,
    /// How much of the experiment: 1 for all its cycles
    #[arg(long, default_value_t = 0.1)]
    scale: f64,
    /// A protocol mutant that the nodes are to be, in a build with the feature `mutants`
    #[arg(long)]
    mutant: Option<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Place {
    /// The frazil command to test
    #[arg(long, value_name = "FILE", default_value = "target/release/frazil")]
    frazil: PathBuf,
    /// Where reports and logs go
    #[arg(long, value_name = "DIRECTORY", default_value = "target/storm")]
    out: PathBuf,
}

fn main() -> ExitCode {
    let command = Command::parse();
    let result = match command.verb {
        Verb::List => Ok(list()),
        Verb::Run(args) => run(&args),
        Verb::Writer { register } => register::write_on(register).map(|()| true),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            tell(&format!("storm: {error}"));
            ExitCode::from(2)
        }
    }
}

fn list() -> bool {
    for row in scenario::ALL {
        let stores: Vec<_> = row.stores.iter().map(ToString::to_string).collect();
        tell(&format!("{}  {:<36} {}", row.id, row.title, stores.join(" ")));
    }
    true
}

fn run(args: &RunArgs) -> io::Result<bool> {
    let row = scenario::named(&args.scenario).map_err(io::Error::other)?;
    if !row.stores.contains(&args.store) {
        return Err(io::Error::other(format!("{} is not for {}", row.id, args.store)));
    }
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let report = play(row, args.store, seed, args.scale, args.mutant.clone(), &args.place)?;
    tell(&report.page());
    Ok(report.passes)
}

/// Plays a row once, and leaves its report behind.
fn play(
    row: &'static Scenario,
    store: Kind,
    seed: u64,
    scale: f64,
    mutant: Option<String>,
    place: &Place,
) -> io::Result<Report> {
    let version = node::version(&place.frazil)?;
    let name = mutant.as_ref().map_or_else(String::new, |mutant| format!("-{mutant}"));
    let directory = place.out.join(format!("{}-{store}{name}-{seed}", row.id));
    let plan = Plan {
        scenario: row.id,
        store,
        seed,
        scale,
        frazil: absolute(&place.frazil)?,
        mutant,
        directory: directory.clone(),
    };
    std::fs::create_dir_all(&directory)?;
    let report = Report::new(&plan, row.title, &version, row.run(&plan));
    report.save(&directory)?;
    Ok(report)
}

fn absolute(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map_err(|error| {
        io::Error::new(error.kind(), format!("{}: {error}; build it first", path.display()))
    })
}

#[expect(clippy::print_stdout, reason = "what was found is what this prints")]
fn tell(text: &str) {
    println!("{text}");
}
