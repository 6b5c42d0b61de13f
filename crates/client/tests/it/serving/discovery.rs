//! Nodes of one namespace, learned from one of them.

use std::net::SocketAddr;
use std::path::Path;

use frazil_rig::Certificates;
use frazil_server::{Config, TlsFiles};

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// A node of a namespace in a directory, which says where it is reached.
async fn node(directory: &Path, name: &str, change: impl FnOnce(&mut Config, u16)) -> Site {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = format!("file:{}", directory.display());
    Site::start_with(|config| {
        config.node =
            frazil::Node::builder().store(&store).first_use(frazil::coord::FirstUse::AtOnce);
        config.name = name.to_owned();
        config.http = Some(SocketAddr::from(([127, 0, 0, 1], free.port())));
        config.advertise = Some(format!("http://{free}"));
        change(config, free.port());
    })
    .await
}

/// Whose answers had IDs, and who left.
#[derive(Default)]
struct Observed(Mutex<Vec<String>>);

impl frazil_client::Observer for Observed {
    fn event(&self, event: &Event<'_>) {
        let seen = match event {
            Event::Answered { endpoint, ids: 1.., .. } => format!("answered {endpoint}"),
            Event::Joined { endpoint } => format!("joined {endpoint}"),
            Event::Left { endpoint } => format!("left {endpoint}"),
            _ => return,
        };
        self.0.lock().unwrap().push(seen);
    }
}

impl Observed {
    fn has(&self, what: &str) -> bool {
        self.0.lock().unwrap().iter().any(|seen| seen == what)
    }
}

async fn take_until(client: &Client, seen: &Observed, what: String) -> Vec<Id> {
    let mut ids = Vec::new();
    let taking = async {
        while !seen.has(&what) {
            ids.push(client.next().await.unwrap());
        }
    };
    let took = tokio::time::timeout(PATIENCE, taking).await;
    assert!(took.is_ok(), "{what} was never seen: {:?}", client.stats());
    ids
}

#[tokio::test]
async fn nodes_that_join_are_used_and_nodes_that_leave_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let given = node(directory.path(), "a", |_, _| {}).await;
    let first = node(directory.path(), "b", |_, _| {}).await;
    let seen = Arc::new(Observed::default());
    let client = Client::builder()
        .endpoint(given.http())
        .prefetch(0)
        .discover_every(Duration::from_millis(20))
        .shared_observer(seen.clone())
        .build()
        .unwrap();
    let mut ids = take_until(&client, &seen, format!("answered {}", first.http())).await;
    let second = node(directory.path(), "c", |_, _| {}).await;
    ids.extend(take_until(&client, &seen, format!("answered {}", second.http())).await);
    let left = format!("left {}", first.http());
    first.stop().await;
    ids.extend(take_until(&client, &seen, left).await);
    assert_eq!(client.stats().endpoints, 2);
    // The one that was given may go: the others were learned from it.
    given.stop().await;
    ids.extend(many(&client, 100).await);
    assert_eq!(repeated(&ids), 0);
    assert_eq!(client.stats().endpoints, 2, "it is kept all the same");
    second.stop().await;
}

#[tokio::test]
async fn a_node_in_the_clear_is_never_asked_by_whoever_was_given_one_with_tls() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = Certificates::generate().unwrap();
    let secure = |config: &mut Config, port: u16| {
        config.tls = Some(TlsFiles::new(
            certificates.server_cert().to_owned(),
            certificates.server_key().to_owned(),
        ));
        config.advertise = Some(format!("https://localhost:{port}"));
    };
    let given = node(directory.path(), "a", secure).await;
    let plain = node(directory.path(), "b", |_, _| {}).await;
    let secured = node(directory.path(), "c", secure).await;
    let url = |site: &Site| format!("https://localhost:{}", site.addrs.http.unwrap().port());
    let seen = Arc::new(Observed::default());
    let client = Client::builder()
        .endpoint(url(&given))
        .ca(certificates.ca())
        .key("fzk_very_secret")
        .prefetch(0)
        .discover_every(Duration::from_millis(20))
        .shared_observer(seen.clone())
        .build()
        .unwrap();
    // Both are in the same answer, so when this one is used the other was seen, too.
    take_until(&client, &seen, format!("answered {}", url(&secured))).await;
    assert!(!seen.has(&format!("joined {}", plain.http())), "{:?}", seen.0);
    assert_eq!(client.stats().endpoints, 2);
    // The control: who was given one in the clear learns of it, and of those with TLS as well.
    let open = Client::builder()
        .endpoint(plain.http())
        .ca(certificates.ca())
        .prefetch(0)
        .discover_every(Duration::from_millis(20))
        .shared_observer(seen.clone())
        .build()
        .unwrap();
    take_until(&open, &seen, format!("joined {}", url(&given))).await;
    for site in [given, plain, secured] {
        site.stop().await;
    }
}
