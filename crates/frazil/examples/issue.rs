//! Two lanes, a few IDs, a clean end. `cargo run --example issue -- redis://127.0.0.1:6379`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use frazil::{Layout, Node};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Node::builder().namespace("example".parse()?).lanes(2);
    if let Some(url) = std::env::args().nth(1) {
        builder = builder.store(&url);
    }
    let node = builder.start().await?;
    let one = node.next().await?;
    println!("{one} was issued by worker {}", one.parts(&Layout::FRAZIL)?.worker);
    let many = node.batch(1000).await?;
    println!("{} more, and {:?} left without the store", many.len(), node.info().left());
    node.shutdown().await;
    Ok(())
}
