//! The memory store keeps the contract.

use frazil_conformance::{self as conformance, InMemory};

#[tokio::test]
async fn the_memory_store_conforms() {
    conformance::run(&InMemory::plain()).await.unwrap();
}
