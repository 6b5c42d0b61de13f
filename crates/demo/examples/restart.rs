//! Twelve jobs on three nodes, through a restart of each, on a store of files.
//!
//! ```console
//! $ cargo run -p frazil-demo --example restart
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use frazil_coord::{Namespace, StoreUrl};
use frazil_demo::{Ended, Plan, measure};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let plan = Plan {
        url: StoreUrl::file(directory.path().join("store").to_string_lossy()),
        namespace: Namespace::default(),
        app: "example".to_owned(),
        nodes: 3,
        jobs: 12,
        rest: Duration::ZERO,
    };
    let never = std::future::pending::<Infallible>();
    let ended = measure(plan, None, never, |phase| -> Result<(), frazil_demo::Error> {
        println!("{}: {} jobs moved in {:.0} ms", phase.phase, phase.moves, phase.took_ms);
        Ok(())
    })
    .await?;
    // Nobody stops it.
    let Ended::Played(report) = ended;
    println!("in the end: {}", serde_json::to_string(&report.balance)?);
    Ok(())
}
