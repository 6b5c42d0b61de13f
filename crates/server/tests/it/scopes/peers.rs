//! Forwarding: loops, deadlines, keys and certificates.

use std::collections::BTreeMap;
use std::path::Path;

use frazil::coord::Copied;
use frazil::coord::internal::time::boot_time;
use frazil::coord::{Group, Namespace, Slot};
use frazil::election::{Elections, Leadership, Settings};
use frazil_rig::Certificates;
use frazil_server::TlsFiles;
use frazil_server::keys::Role;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;
use crate::site::secured::{Keys, Transport};

/// Leads the scope in the store under an address, without being a node.
pub(super) async fn lead_as(place: &Place, address: &str) -> Leadership {
    let (url, namespace) = (place.url(), Namespace::default());
    let store = frazil::coord::open(&url, &namespace, Copied::Refuse).await.unwrap();
    let elections = Elections::new(store);
    let settings = Settings::default()
        .with_instance("impostor")
        .with_metadata(BTreeMap::from([("advertise".to_owned(), address.to_owned())]))
        .with_heartbeat(Duration::from_secs(1))
        .with_window(Some(Duration::from_secs(3)));
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
    until("IDs", || async { (site.post("/ids?scope=orders").await.status == 200).then_some(()) })
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
    let replies = closed_to(transport, peer, client, keys, &["/ids?scope=orders"]).await;
    replies.into_iter().next().unwrap()
}

/// The same with several requests, one after the other.
async fn closed_to(
    transport: Transport,
    peer: &str,
    client: &str,
    keys: &Keys,
    paths: &[&str],
) -> Vec<Reply> {
    let (place, certificates) = (Place::new(), Certificates::generate().unwrap());
    let file = place.0.path().join("peer-key");
    std::fs::write(&file, format!("{peer}\n")).unwrap();
    let secured = |config: &mut Config| {
        config.keys = Some(keys.path().into());
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
        crate::site::reply(&bytes)
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
    let mut replies = Vec::new();
    for path in paths {
        replies.push(read(&two, path, "POST").await);
    }
    two.stop().await.unwrap();
    one.stop().await.unwrap();
    replies
}

#[tokio::test]
async fn only_a_key_with_the_role_peer_forwards() {
    let mut keys = Keys::new();
    let (peer, client) = (keys.add("nodes", Role::Peer), keys.add("client", Role::Ids));
    let both = keys.add_with("both", Role::Peer, |entry| entry.roles.push(Role::Ids));
    let (place, file) = (Place::new(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(file.path(), &peer).unwrap();
    let secured = |config: &mut Config| {
        config.keys = Some(keys.path().into());
        config.peer_key_file = Some(file.path().to_owned());
    };
    let site = place.site("one", secured).await;
    let ask = async |key: &str, forwarded: &[(&str, &str)]| {
        let shown = format!("Bearer {key}");
        let headers = [&[("authorization", shown.as_str())], forwarded].concat();
        request(site.http(), "POST", "/ids?scope=orders", &headers, b"").await
    };
    until("a leader", || async { (ask(&client, &[]).await.status == 200).then_some(()) }).await;
    let forwarded = [("frazil-forwarded", "two"), ("frazil-patience-ms", "1500")];
    for (key, plainly, as_a_node) in [(&client, 200, 403), (&peer, 403, 200), (&both, 200, 200)] {
        assert_eq!(ask(key, &[]).await.status, plainly);
        assert_eq!(ask(key, &forwarded).await.status, as_a_node);
    }
    let refused = ask(&client, &forwarded).await;
    assert_eq!(refused.reason(), "FORBIDDEN");
    assert!(refused.text().contains("role peer"), "{}", refused.text());
    // The token that it leads with is told to nodes, and to nobody else.
    assert!(ask(&both, &forwarded).await.headers.contains_key("frazil-leader-token"));
    assert!(!ask(&both, &[]).await.headers.contains_key("frazil-leader-token"));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn nodes_show_their_key_to_each_other_over_every_transport() {
    for transport in Transport::ALL {
        let mut keys = Keys::new();
        let (peer, client) = (keys.add("peer", Role::Peer), keys.add("client", Role::Ids));
        let reply = closed(transport, &peer, &client, &keys).await;
        assert_eq!(ids(&reply).metadata.node, "one", "{transport:?}");
    }
}

#[tokio::test]
async fn a_key_that_opens_nothing_is_the_nodes_fault_and_not_the_clients() {
    let mut keys = Keys::new();
    let (reader, client) = (keys.add("reader", Role::Read), keys.add("client", Role::Ids));
    let unknown = Keys::new().add("unknown", Role::Peer);
    for wrong in [&reader, &client.clone(), &unknown] {
        let reply = closed(Transport::Plain, wrong, &client, &keys).await;
        assert_eq!((reply.status, reply.reason().as_str()), (503, "NO_LEADER"));
        assert!(reply.text().contains("--peer-key-file"), "{}", reply.text());
        assert!(!reply.text().contains(wrong.as_str()), "the key is not told");
    }
}

#[tokio::test]
async fn a_quota_of_the_nodes_key_is_the_nodes_fault_and_not_the_clients() {
    let mut keys = Keys::new();
    let peer = keys.add_with("peer", Role::Peer, |entry| {
        entry.ids_per_second = std::num::NonZeroU32::new(10);
    });
    let client = keys.add("client", Role::Ids);
    let paths =
        ["/ids?scope=orders&count=11", "/ids?scope=orders", "/ids?scope=orders&count=100001"];
    let replies = closed_to(Transport::Plain, &peer, &client, &keys, &paths).await;
    let [small_quota, one, too_many] = &replies[..] else { panic!("{replies:?}") };
    let (status, reason) = (small_quota.status, small_quota.reason());
    assert_eq!((status, reason.as_str()), (503, "NO_LEADER"), "{}", small_quota.text());
    assert!(small_quota.text().contains("--peer-key-file"), "{}", small_quota.text());
    assert!(small_quota.headers.contains_key("retry-after"), "{:?}", small_quota.headers);
    assert_eq!(ids(one).metadata.node, "one", "the leader is asked for what it gives");
    assert_eq!(too_many.reason(), "COUNT_OUT_OF_RANGE", "what no node gives is the client's fault");
}

/// Roles and quotas are looked at where the client asks.
#[tokio::test]
async fn a_client_is_let_in_by_the_node_that_it_asks() {
    let mut keys = Keys::new();
    let peer = keys.add("peer", Role::Peer);
    let reader = keys.add("reader", Role::Read);
    let reply = closed(Transport::Plain, &peer, &reader, &keys).await;
    assert_eq!(reply.reason(), "FORBIDDEN");
    let frugal = keys.add_with("frugal", Role::Ids, |entry| {
        entry.scopes = Some(vec!["web".to_owned()]);
    });
    let reply = closed(Transport::Plain, &peer, &frugal, &keys).await;
    assert_eq!(reply.reason(), "FORBIDDEN");
}

/// A leader with a certificate, and a node that forwards to it. What is done to the files of the
/// second one, and what its clients are told then.
async fn rotated(asks_for_certificates: bool, change: impl Fn(&Certificates, &Path)) {
    let (place, ours) = (Place::new(), Certificates::generate().unwrap());
    let theirs = Certificates::generate().unwrap();
    let own = TlsFiles::new(ours.server_cert().to_owned(), ours.server_key().to_owned())
        .with_client_ca(asks_for_certificates.then(|| ours.ca().to_owned()));
    let one = place
        .site("one", |config| {
            config.tls = Some(own);
            config.peer_ca = Some(ours.ca().to_owned());
        })
        .await;
    let files = tempfile::tempdir().unwrap();
    let at = |name: &str| files.path().join(name);
    let of = |certificates: &Certificates| {
        std::fs::copy(certificates.server_cert(), at("cert")).unwrap();
        std::fs::copy(certificates.server_key(), at("key")).unwrap();
        std::fs::copy(certificates.ca(), at("ca")).unwrap();
    };
    of(&ours);
    let two = place
        .site("two", |config| {
            // Its clients need no certificate here, and speak RESP.
            config.tls = Some(TlsFiles::new(at("cert"), at("key")));
            config.peer_ca = Some(at("ca"));
            config.limits.max_wait = Duration::from_millis(500);
        })
        .await;
    let ask = async || {
        let trust = crate::site::secured::client(&at("trusted"), None, b"http/1.1");
        let stream = TcpStream::connect(two.http()).await.unwrap();
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let connector = tokio_rustls::TlsConnector::from(trust);
        let mut stream = connector.connect(name, stream).await.unwrap();
        let head = "POST /ids?scope=orders HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        crate::site::reply(&bytes)
    };
    let trusted = |certificates: &Certificates| {
        std::fs::copy(certificates.ca(), at("trusted")).unwrap();
    };
    trusted(&ours);
    until("an answer of the leader", || async { (ask().await.status == 200).then_some(()) }).await;
    for is_ours in [false, true] {
        let certificates = if is_ours { &ours } else { &theirs };
        change(certificates, files.path());
        two.reloader.reload().unwrap();
        // What the node shows to its own clients may have changed too.
        let shown = std::fs::read(at("cert")).unwrap();
        trusted(if shown == std::fs::read(ours.server_cert()).unwrap() { &ours } else { &theirs });
        if is_ours {
            let looked = || async { (ask().await.status == 200).then_some(()) };
            until("an answer of the leader", looked).await;
        } else {
            let reply = ask().await;
            assert_eq!((reply.status, reply.reason().as_str()), (503, "NO_LEADER"));
            assert!(reply.text().contains("cannot be reached"), "{}", reply.text());
        }
    }
    two.stop().await.unwrap();
    one.stop().await.unwrap();
}

#[tokio::test]
async fn an_authority_that_is_withdrawn_is_not_trusted_after_a_reload() {
    let change = |certificates: &Certificates, files: &Path| {
        std::fs::copy(certificates.ca(), files.join("ca")).unwrap();
    };
    rotated(false, change).await;
}

#[tokio::test]
async fn the_certificate_that_is_shown_to_other_nodes_is_read_again() {
    let change = |certificates: &Certificates, files: &Path| {
        std::fs::copy(certificates.server_cert(), files.join("cert")).unwrap();
        std::fs::copy(certificates.server_key(), files.join("key")).unwrap();
    };
    rotated(true, change).await;
}
