//! A key that ends with its lease, and a watch that sees it come and go.
//!
//! ```console
//! $ cargo run -p frazil-etcd --example announce -- 127.0.0.1:2379
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use frazil_etcd::{Client, Config, EventType, PutRequest, TxnRequest, WatchCreateRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2379".into());
    let etcd = Client::new(&address, &Config::default())?;
    println!("etcd {}, members: {}", etcd.status().await?.version, etcd.member_count().await?);

    let mut watch = etcd.watch(&[WatchCreateRequest::prefix("/services/")]).await?;
    let lease = etcd.grant_lease(2).await?;
    let put = PutRequest { key: "/services/one".into(), value: "here".into(), lease };
    etcd.txn(&TxnRequest { success: vec![put.into()], ..TxnRequest::default() }).await?;

    // Nobody keeps the lease alive, so the key goes after two seconds.
    loop {
        for event in watch.changes().await? {
            let key = event.kv.as_ref().map(|kv| String::from_utf8_lossy(&kv.key));
            println!("{:?} {}", event.r#type(), key.unwrap_or_default());
            if event.r#type() == EventType::Delete {
                return Ok(());
            }
        }
    }
}
