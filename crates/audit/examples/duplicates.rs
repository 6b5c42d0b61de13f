//! Two generators that were given the same worker, and what an audit of their IDs says.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use frazil_audit::Auditor;
use frazil_id::{Generator, Layout, ManualClock, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::FRAZIL;
    let mut auditor = Auditor::new(&layout, 3);
    for name in ["one", "other"] {
        // Both at the same time, as the same worker: what a lease prevents.
        let ids =
            Generator::new(&layout, 7, ManualClock::advancing(&layout, 1_000), Options::default())?;
        let mut source = auditor.source(name);
        for (id, line) in ids.batch(10_000)?.iter().zip(1..) {
            source.check(id, line);
        }
    }
    let verdict = auditor.finish();
    println!("{} IDs, {} duplicates", verdict.checked, verdict.duplicates);
    for found in &verdict.first_duplicates {
        let name = &verdict.sources[found.again.source].name;
        println!("{} again in line {} of {name}", found.id, found.again.at);
    }
    Ok(())
}
