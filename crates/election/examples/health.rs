//! Health as JSON: whether this process leads, who it is, and who leads since when.
//!
//! ```console
//! $ cargo run -p frazil-election --example health
//! ```
//!
//! Then `curl http://127.0.0.1:8099`; `FRAZIL_EXAMPLE_LISTEN` names another address.
//! `FRAZIL_STORE` names the store (with the features `redis`, `etcd` and `zookeeper` also those), and
//! `FRAZIL_ELECTION_TTL` and its kind the settings.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use frazil_coord::{Namespace, StoreUrl, UrlError};
use frazil_election::{Callbacks, Elections, Elector, LeaderInfo, Settings};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What is told.
#[derive(Serialize)]
struct Health<'a> {
    is_leader: bool,
    instance_id: &'a str,
    /// With the last heartbeat, `renewed_ms`.
    leader_info: Option<LeaderInfo>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_env()?;
    let elections = Elections::open(&store()?, &Namespace::default(), &settings).await?;
    let candidate = elections.candidate("example-health", settings)?;
    let elector = Elector::start(candidate, Callbacks::new());
    let address = std::env::var("FRAZIL_EXAMPLE_LISTEN");
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8099")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    tokio::select! {
        served = serve(&listener, &elector) => served?,
        () = interrupted() => {}
    }
    elector.stop().await?;
    Ok(())
}

/// The JSON object.
pub(crate) fn health(elector: &Elector) -> serde_json::Result<String> {
    let leader_info = elector.leader().borrow().clone();
    let (is_leader, instance_id) = (elector.is_leader(), elector.instance());
    serde_json::to_string(&Health { is_leader, instance_id, leader_info })
}

/// Answers every request with it, as far as an example needs HTTP.
async fn serve(listener: &TcpListener, elector: &Elector) -> Result<(), Box<dyn Error>> {
    loop {
        let (mut connection, _) = listener.accept().await?;
        let _request = connection.read(&mut [0; 4096]).await?;
        let body = health(elector)?;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}\n"
        );
        connection.write_all(answer.as_bytes()).await?;
    }
}

/// The store of the environment, or a directory that all examples on this machine share.
fn store() -> Result<StoreUrl, UrlError> {
    let shared = std::env::temp_dir().join("frazil-examples");
    let default = || format!("file:{}", shared.display());
    std::env::var("FRAZIL_STORE").unwrap_or_else(|_| default()).parse()
}

async fn interrupted() {
    // Where signals cannot be caught, the process simply ends.
    let _ = tokio::signal::ctrl_c().await;
}
