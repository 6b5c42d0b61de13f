//! A million IDs one by one, while servers come and go: `million http://a:7780 http://b:7780`.
#![expect(clippy::print_stdout, reason = "the result")]

use std::collections::HashSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = frazil_client::Client::connect(std::env::args().skip(1)).await?;
    let began = tokio::time::Instant::now();
    let mut ids = Vec::with_capacity(1_000_000);
    while ids.len() < 1_000_000 {
        ids.push(client.next().await?);
    }
    let took = began.elapsed();
    let distinct = ids.iter().collect::<HashSet<_>>().len();
    println!("1000000 IDs in {took:?}, {distinct} of them distinct\n{:?}", client.stats());
    Ok(())
}
