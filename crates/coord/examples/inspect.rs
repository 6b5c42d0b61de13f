//! What a store promises, what is not as it should be with it, and which workers are held.
//!
//! ```console
//! $ cargo run -p frazil-coord --example inspect --features redis -- redis://127.0.0.1:6379
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use frazil_coord::{Found, Group, Namespace, Presence, StoreUrl, Timing, look};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let url: StoreUrl = url.parse()?;
    let store = look(&url, &Namespace::default()).await?;
    let guarantees = store.guarantees();
    println!("{}: uniqueness is {}", guarantees.store, guarantees.uniqueness.word());
    println!("because {}", guarantees.because);
    for finding in store.diagnose(&Timing::default()).await? {
        println!("{:?}: {finding}", finding.severity);
    }
    for entry in store.list(Group::Workers).await? {
        if let (Found::Known(record), Presence::Held { .. }) = (&entry.found, entry.presence) {
            println!("{} is held by {} with token {}", entry.slot, record.holder, record.token);
        }
    }
    Ok(())
}
