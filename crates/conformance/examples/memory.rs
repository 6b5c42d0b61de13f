//! The memory store put through the contract, and a store that breaks it.
//!
//! ```console
//! $ cargo run -p frazil-conformance --example memory
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use frazil_conformance::{Chances, Faulty, InMemory, cases};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (plain, lossy) = (
        InMemory::plain(),
        InMemory::wrapped(|store| {
            Arc::new(Faulty::new(store, Chances { reply_lost: 200, ..Chances::default() }, 1))
        }),
    );
    for case in cases() {
        for (store, subject) in [("memory", &plain), ("lossy", &lossy)] {
            match case.check(subject).await {
                Ok(()) => println!("{store}: {}: kept", case.name),
                Err(violation) => println!("{store}: {}: {violation}", case.name),
            }
        }
    }
}
