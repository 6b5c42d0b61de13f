//! Forwarding: loops, deadlines, keys and certificates.

use std::collections::BTreeMap;

use frazil::coord::stores::file::Copied;
use frazil::coord::time::boot_time;
use frazil::coord::{Group, Namespace, Slot};
use frazil::election::{Elections, Leadership, Settings};
use frazil_rig::Certificates;
use frazil_server::keys::Role;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::site::secured::{Keys, Transport};
use super::*;

/// Leads the scope in the store under an address, without being a node.
async fn lead_as(place: &Place, address: &str) -> Leadership {
    let (url, namespace) = (place.url(), Namespace::default());
    let store = frazil::coord::open(&url, &namespace, Copied::Refuse).await.unwrap();
    let elections = Elections::new(store);
    let settings = Settings {
        instance: "impostor".into(),
        metadata: BTreeMap::from([("advertise".to_owned(), address.to_owned())]),
        heartbeat: Duration::from_secs(1),
        window: Some(Duration::from_secs(3)),
        ..Settings::default()
    };
    let slot = Slot::named(Group::Scopes, "orders").unwrap();
    elections.candidate_for(slot, settings).unwrap().campaign().await.unwrap()
}

/// `host:1` is what the processes of many containers are called.
#[tokio::test]
async fn a_node_forwards_to_another_of_its_name() {
    let place = Place::new();
    let one = place.site("host:1", |_| {}).await;
    led_by(&one, "host:1").await;
    let two = place.site("host:1", |_| {}).await;
    led_by(&two, "host:1").await;
    let (first, second) = (
        ids(&one.post("/ids?scope=orders").await).metadata,
        ids(&two.post("/ids?scope=orders").await).metadata,
    );
    assert_eq!(first.worker, second.worker, "both are the leader's");
    let leads = async |site: &Site| {
        let reply = site.get("/v1/elections/scope%3Aorders").await;
        serde_json::from_slice::<Election>(&reply.body).unwrap().is_leader
    };
    assert!(leads(&one).await && !leads(&two).await, "one of them leads");
    two.stop().await.unwrap();
    one.stop().await.unwrap();
}

#[tokio::test]
async fn a_forwarded_request_is_never_forwarded_again() {
    let place = Place::new();
    let (one, two) = place.pair().await;
    let forwarded = [("frazil-forwarded", "somebody"), ("frazil-patience-ms", "1500")];
    let reply = request(two.http(), "POST", "/ids?scope=orders", &forwarded, b"").await;
    assert_eq!((reply.status, reply.reason().as_str()), (503, "NO_LEADER"));
    assert!(reply.text().contains("not forwarded again"), "{}", reply.text());
    assert!(reply.headers.contains_key("retry-after"));
    let issued = "frazil_ids_issued_total{protocol=\"http\",scope=\"orders\"}";
    assert!(one.metric(issued).await < 0.5, "the leader heard nothing of it");
    // At the leader it is answered, and says who answered.
    let reply = request(one.http(), "POST", "/ids?scope=orders", &forwarded, b"").await;
    assert_eq!((reply.status, reply.headers["frazil-node"].as_str()), (200, "one"));
    // Whoever asks the other node learns too who issued them.
    let binary = [("accept", "application/octet-stream")];
    let reply = request(two.http(), "POST", "/ids?scope=orders", &binary, b"").await;
    assert_eq!((reply.status, reply.headers["frazil-node"].as_str()), (200, "one"));
    assert!(reply.headers["frazil-token"].parse::<u64>().is_ok());
    let nonsense = [("frazil-forwarded", "somebody"), ("frazil-patience-ms", "soon")];
    let reply = request(one.http(), "POST", "/ids?scope=orders", &nonsense, b"").await;
    assert_eq!(reply.reason(), "INVALID_ARGUMENT");
    two.stop().await.unwrap();
    one.stop().await.unwrap();
}

/// What it forwards comes back to it, and goes no further.
#[tokio::test]
async fn a_leader_that_is_none_is_not_believed_for_longer_than_the_request_waits() {
    let place = Place::new();
    place.site("first", |_| {}).await.stop().await.unwrap();
    // The address of the node itself: whatever it forwards comes back to it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let leadership = lead_as(&place, &format!("http://{address}")).await;
    let two = place
        .site("two", |config| {
            config.http = Some(address);
            config.limits.max_wait = Duration::from_secs(2);
        })
        .await;
    led_by(&two, "impostor").await;
    let began = boot_time();
    let reply = two.post("/ids?scope=orders").await;
    assert_eq!(reply.reason(), "NO_LEADER");
    assert!(boot_time() - began < Duration::from_secs(10));
    leadership.resign_at(0).await.unwrap();
    led_by(&two, "two").await;
    ids(&two.post("/ids?scope=orders").await);
    two.stop().await.unwrap();
}

#[tokio::test]
async fn the_deadline_of_a_request_is_passed_on_and_kept() {
    let place = Place::new();
    let first = place.site("first", |_| {}).await;
    first.stop().await.unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let leadership = lead_as(&place, &format!("http://{}", silent.local_addr().unwrap())).await;
    let site = place.site("two", |_| {}).await;
    led_by(&site, "impostor").await;
    let heard = tokio::spawn(async move {
        let (mut stream, _) = silent.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        // Kept open, and never answered.
        (String::from_utf8_lossy(&bytes[..count]).into_owned(), stream)
    });
    let mut client = client(&site).await;
    let wish = NextRequest { scope: "orders".into(), ..Default::default() };
    let mut wish = tonic::Request::new(wish);
    wish.set_timeout(Duration::from_millis(400));
    let began = boot_time();
    let status = client.next(wish).await.unwrap_err();
    // The client's own timer may be faster than the server's answer.
    let is_late = [tonic::Code::DeadlineExceeded, tonic::Code::Cancelled].contains(&status.code());
    assert!(is_late, "{status}");
    assert!(boot_time() - began < Duration::from_secs(2));
    let (head, _stream) = heard.await.unwrap();
    assert!(head.starts_with("POST /v1/ids?count=1&scope=orders HTTP/1.1\r\n"), "{head}");
    let patience = head.lines().find_map(|line| line.strip_prefix("frazil-patience-ms: "));
    let patience: u64 = patience.unwrap().parse().unwrap();
    assert!((1..=400).contains(&patience), "{patience}");
    drop(leadership);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_leader_that_cannot_be_reached_is_told_of_and_then_replaced() {
    let place = Place::new();
    place.site("first", |_| {}).await.stop().await.unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let leadership = lead_as(&place, &format!("http://{gone}")).await;
    let site =
        place.site("two", |config| config.limits.max_wait = Duration::from_millis(300)).await;
    led_by(&site, "impostor").await;
    let reply = site.post("/ids?scope=orders").await;
    assert_eq!((reply.status, reply.reason().as_str()), (503, "NO_LEADER"));
    assert!(reply.text().contains("cannot be reached"), "{}", reply.text());
    // Nobody said which times were used: the next leader waits until all have passed.
    leadership.resign().await.unwrap();
    led_by(&site, "two").await;
    let reply = site.post("/ids?scope=orders").await;
    assert_eq!((reply.status, reply.reason().as_str()), (503, "NO_LEADER"), "{}", reply.text());
    assert!(reply.text().contains("times of the leader before"), "{}", reply.text());
    until("Ids", || async { (site.post("/ids?scope=orders").await.status == 200).then_some(()) })
        .await;
    site.stop().await.unwrap();
}

/// Whoever can write to the store names an address, and must not be shown the key there.
#[tokio::test]
async fn where_tls_is_asked_for_nothing_is_forwarded_without_it() {
    let (place, certificates) = (Place::new(), Certificates::generate().unwrap());
    place.site("first", |_| {}).await.stop().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let leadership = lead_as(&place, &format!("http://{}", listener.local_addr().unwrap())).await;
    let change = |config: &mut Config| {
        config.peer_ca = Some(certificates.ca().to_owned());
        config.limits.max_wait = Duration::from_millis(300);
    };
    let site = place.site("two", change).await;
    led_by(&site, "impostor").await;
    let reply = site.post("/ids?scope=orders").await;
    assert_eq!(reply.reason(), "NO_LEADER");
    assert!(reply.text().contains("not https"), "{}", reply.text());
    let came = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(came.is_err(), "nobody connects");
    drop(leadership);
    site.stop().await.unwrap();
}

/// Two nodes with keys, over a transport; the second one shows a key to the first.
async fn closed(transport: Transport, peer: &str, client: &str, keys: &Keys) -> Reply {
    let (place, certificates) = (Place::new(), Certificates::generate().unwrap());
    let file = place.0.path().join("peer-key");
    std::fs::write(&file, format!("{peer}\n")).unwrap();
    let secured = |config: &mut Config| {
        config.keys = Some(keys.path());
        config.peer_key_file = Some(file.clone());
        config.tls = transport.files(&certificates);
        config.peer_ca = config.tls.is_some().then(|| certificates.ca().to_owned());
    };
    let one = place.site("one", secured).await;
    let read = async |site: &Site, path: &str, method: &str| {
        let mut line = transport.connect(site.http(), &certificates, b"http/1.1").await;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer \
             {client}\r\n\r\n"
        );
        line.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let _ = line.read_to_end(&mut bytes).await;
        super::site::reply(&bytes)
    };
    let leads = async |site: &Site| {
        until("leader", || async {
            let info: Info =
                serde_json::from_slice(&read(site, "/v1/info", "GET").await.body).unwrap();
            info.scopes[0].leader.clone().filter(|leader| leader.node == "one")
        })
        .await;
    };
    leads(&one).await;
    let two = place.site("two", secured).await;
    leads(&two).await;
    let reply = read(&two, "/ids?scope=orders", "POST").await;
    two.stop().await.unwrap();
    one.stop().await.unwrap();
    reply
}

#[tokio::test]
async fn nodes_show_their_key_to_each_other_over_every_transport() {
    for transport in Transport::ALL {
        let mut keys = Keys::new();
        let (peer, client) = (keys.add("peer", Role::Ids), keys.add("client", Role::Ids));
        let reply = closed(transport, &peer, &client, &keys).await;
        assert_eq!(ids(&reply).metadata.node, "one", "{transport:?}");
    }
}

#[tokio::test]
async fn a_key_that_opens_nothing_is_the_nodes_fault_and_not_the_clients() {
    let mut keys = Keys::new();
    let (reader, client) = (keys.add("reader", Role::Read), keys.add("client", Role::Ids));
    let unknown = Keys::new().add("unknown", Role::Ids);
    for wrong in [&reader, &unknown] {
        let reply = closed(Transport::Plain, wrong, &client, &keys).await;
        assert_eq!((reply.status, reply.reason().as_str()), (503, "NO_LEADER"));
        assert!(reply.text().contains("--peer-key-file"), "{}", reply.text());
        assert!(!reply.text().contains(wrong.as_str()), "the key is not told");
    }
}

/// Roles and quotas are looked at where the client asks.
#[tokio::test]
async fn a_client_is_let_in_by_the_node_that_it_asks() {
    let mut keys = Keys::new();
    let peer = keys.add("peer", Role::Ids);
    let reader = keys.add("reader", Role::Read);
    let reply = closed(Transport::Plain, &peer, &reader, &keys).await;
    assert_eq!(reply.reason(), "FORBIDDEN");
    let frugal = keys.add_with("frugal", Role::Ids, |entry| {
        entry.scopes = Some(vec!["web".to_owned()]);
    });
    let reply = closed(Transport::Plain, &peer, &frugal, &keys).await;
    assert_eq!(reply.reason(), "FORBIDDEN");
}
