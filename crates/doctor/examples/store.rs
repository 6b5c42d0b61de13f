//! The checks of a store and of the default namespace in it.
//!
//! ```console
//! $ cargo run -p frazil-doctor --example store -- file:/tmp/store
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use frazil_coord::{Namespace, StoreUrl, Timing};
use frazil_doctor::{Finding, NodeSettings};
use frazil_id::Layout;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1);
    let node = NodeSettings {
        url: url.map_or_else(|| Ok(StoreUrl::file("/tmp/store")), |url| url.parse())?,
        namespace: Namespace::default(),
        layout: Layout::FRAZIL,
        timing: Timing::default(),
        workers: None,
        flags: String::new(),
    };
    tell(&[frazil_doctor::clock(), frazil_doctor::timing(&node, node.clash().as_ref())]);
    tell(&frazil_doctor::login(&node).await);
    let (findings, store) = frazil_doctor::store(&node).await;
    tell(&findings);
    if let Some(store) = store {
        tell(&frazil_doctor::guarantees(&node, store.as_ref()).await);
        tell(&frazil_doctor::namespace(&node, store.as_ref()).await);
        tell(&frazil_doctor::pool(&node, store.as_ref()).await);
    }
    Ok(())
}

fn tell(findings: &[Finding]) {
    for Finding { check, status, detail, fix, .. } in findings {
        println!("{status:?} {check}: {detail}");
        if let Some(fix) = fix {
            println!("    fix: {fix}");
        }
    }
}
