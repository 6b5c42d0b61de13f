//! Servers and clients for the tests.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use frazil_rig::ZooKeeper;
use frazil_zookeeper::{Acl, Client, Config, CreateMode, Permissions, State};

pub(crate) const ANYONE: [Acl; 1] = [Acl::anyone(Permissions::ALL)];

/// More than anything here takes.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

/// A server that no test hurts.
pub(crate) fn server() -> &'static ZooKeeper {
    static SERVER: OnceLock<ZooKeeper> = OnceLock::new();
    SERVER.get_or_init(|| ZooKeeper::start().unwrap())
}

/// Settings for a server of this machine.
pub(crate) fn config(port: u16) -> Config {
    Config::new([("127.0.0.1".to_owned(), port)])
}

pub(crate) async fn connect(port: u16) -> Client {
    Client::connect(&config(port)).await.unwrap()
}

/// A client of the server that no test hurts, and a node of its own.
pub(crate) async fn client_and_node() -> (Client, String) {
    let client = connect(server().port()).await;
    let path = new_path();
    client.create(&path, b"first", CreateMode::Persistent, &ANYONE).await.unwrap();
    (client, path)
}

pub(crate) fn new_path() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only the count matters.
    format!("/test-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Waits until the client is in a state.
pub(crate) async fn wait_for(client: &Client, state: State) {
    let mut states = client.states();
    let reached = states.wait_for(|now| *now == state);
    within(reached).await.unwrap();
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT, future).await.expect("it takes too long")
}
