//! IDs from a server in this process, one by one and at once. `--features testing`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use frazil_client::Client;
use frazil_client::testing::FakeServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = FakeServer::start().await?;
    let ids = Client::connect([server.url()]).await?;
    for _ in 0..10_000 {
        ids.next().await?;
    }
    let batch = ids.batch(100).await?;
    println!("10000 IDs one by one and {} at once, with {} requests", batch.len(), server.asked());
    println!("{:?}", ids.stats());
    ids.close();
    Ok(())
}
