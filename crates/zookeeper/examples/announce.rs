//! A node that ends with its session, and a watch that sees it come and go.
//!
//! ```console
//! $ cargo run -p frazil-zookeeper --example announce -- 127.0.0.1:2181
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use frazil_zookeeper::{Acl, Client, Config, CreateMode, Event, Permissions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".into());
    let (host, port) = address.rsplit_once(':').ok_or("not HOST:PORT")?;
    let config = Config::new([(host.to_owned(), port.parse()?)]);
    let (watcher, owner) = (Client::connect(&config).await?, Client::connect(&config).await?);
    println!("session {} of {:?}", owner.session_id(), owner.session_timeout());

    let mut watch = watcher.watch("/announced").await?;
    let anyone = [Acl::anyone(Permissions::ALL)];
    owner.create("/announced", b"here", CreateMode::Ephemeral, &anyone).await?;
    // This closes the session, and the node goes with it.
    drop(owner);
    while let Some(event) = watch.next().await {
        println!("{event:?}");
        if matches!(event, Event::Deleted(_)) {
            break;
        }
    }
    Ok(())
}
