//! A server in this process.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use frazil::coord::FirstUse;
use frazil_client::{Client, Id};
use frazil_server::{Addrs, App, Config, NodeState, RunError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server on free ports, with files of its own.
pub(crate) struct Site {
    pub(crate) addrs: Addrs,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), RunError>>,
    /// Removed at the end.
    _directory: tempfile::TempDir,
}

impl Site {
    /// One that is ready.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// The same with some settings changed.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = format!("file:{}", directory.path().display());
        let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let mut config = Config::default();
        // The directory is the test's own: its IDs need not run ahead of time at first.
        config.node = frazil::Node::builder().store(&store).first_use(FirstUse::AtOnce);
        config.name = "tested".to_owned();
        (config.http, config.grpc, config.resp) = (free, free, None);
        config.drain_delay = Duration::ZERO;
        change(&mut config);
        let app = App::bind(config).await.unwrap();
        let (addrs, mut condition) = (app.addrs(), app.condition());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app.run(async {
            let _ = stopped.await;
        }));
        condition.wait_for(|condition| condition.state == NodeState::Ready).await.unwrap();
        Self { addrs, stop: Some(stop), running, _directory: directory }
    }

    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.running.await.unwrap().unwrap();
    }

    pub(crate) fn http(&self) -> String {
        format!("http://{}", self.addrs.http.unwrap())
    }

    pub(crate) fn grpc(&self) -> String {
        format!("grpc://{}", self.addrs.grpc.unwrap())
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect([self.http()]).await.unwrap()
    }
}

/// So many IDs, one after the other.
pub(crate) async fn many(client: &Client, count: usize) -> Vec<Id> {
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        ids.push(client.next().await.unwrap());
    }
    ids
}

/// How many of them are there more than once.
pub(crate) fn repeated<'a>(ids: impl IntoIterator<Item = &'a Id>) -> usize {
    let mut seen = BTreeSet::new();
    ids.into_iter().filter(|id| !seen.insert(**id)).count()
}
