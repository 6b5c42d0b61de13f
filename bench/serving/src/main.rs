//! The server at full speed, at a million IDs a second and asked for more than it has, each beside a bare
//! baseline or a peer in the same run. The load generators share the machine's cores with what they measure.
#![expect(clippy::print_stdout, reason = "the report")]

mod at_rate;
mod bare;
mod client;
mod connections;
mod counters;
mod fairness;
mod generator;
mod grpc;
mod half;
mod hostile;
mod http;
mod node;
mod overload;
mod pool;
mod process;
mod redis;
mod strict;

use std::time::Duration;

use frazil_bench::machine;
use mimalloc::MiMalloc;

/// The one of the `frazil` command: what is measured is what users run.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What a failed measurement says.
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long and how often things are measured.
#[derive(Clone, Copy, Debug)]
struct MeasurementPlan {
    span: Duration,
    rounds: usize,
}

const FULL: MeasurementPlan = MeasurementPlan { span: Duration::from_secs(3), rounds: 5 };
const QUICK: MeasurementPlan = MeasurementPlan { span: Duration::from_millis(300), rounds: 1 };

/// What is measured, under a name.
type Section = (&'static str, fn(MeasurementPlan) -> Outcome);

/// In the order in which they are printed.
const SECTIONS: [Section; 10] = [
    ("http", http::report),
    ("strict", strict::report),
    ("redis", redis::report),
    ("grpc", grpc::report),
    ("pool", pool::report),
    ("rate", at_rate::report),
    ("overload", overload::report),
    ("fairness", fairness::report),
    ("connections", connections::report),
    ("hostile", hostile::report),
];

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        // The processes that are measured are this program too.
        ["node", words @ ..] => node::run(words),
        ["scoped", directory, name] => node::run_scoped(directory, name),
        ["bare", words @ ..] => bare::run(words),
        words => report(words),
    }
}

/// Measures the sections that are named, or all.
fn report(words: &[&str]) -> Outcome {
    let known: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
    if let Some(word) = words.iter().find(|word| **word != "--quick" && !known.contains(*word)) {
        return Err(format!("{word} is neither --quick nor one of: {}", known.join(", ")).into());
    }
    let effort = if words.contains(&"--quick") { QUICK } else { FULL };
    let is_all = words.iter().all(|word| *word == "--quick");
    println!("{}\n", machine());
    for (name, section) in SECTIONS {
        if is_all || words.contains(&name) {
            section(effort)?;
        }
    }
    Ok(())
}
