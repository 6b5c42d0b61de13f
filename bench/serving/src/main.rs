//! The server at full speed and at a million Ids a second, each beside a bare baseline or a peer in
//! the same run. The load generators share the machine's cores with what they measure.
#![expect(clippy::print_stdout, reason = "the report")]

mod at_rate;
mod bare;
mod grpc;
mod hostile;
mod http;
mod node;
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
struct Effort {
    span: Duration,
    rounds: usize,
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        // The processes that are measured are this program too.
        ["node", lanes] => node::run(lanes.parse()?),
        ["scoped", directory, name] => node::run_scoped(directory, name),
        ["bare"] => bare::run(),
        ["pool"] => pool::report(Effort { span: Duration::from_secs(3), rounds: 5 }),
        [] => report(Effort { span: Duration::from_secs(3), rounds: 5 }),
        ["--quick"] => report(Effort { span: Duration::from_millis(300), rounds: 1 }),
        _ => Err("the one option is --quick; pool measures the client's pool alone".into()),
    }
}

fn report(effort: Effort) -> Outcome {
    println!("{}\n", machine());
    http::report(effort)?;
    strict::report(effort)?;
    redis::report(effort)?;
    grpc::report(effort)?;
    pool::report(effort)?;
    at_rate::report(effort)?;
    hostile::report(effort)
}
