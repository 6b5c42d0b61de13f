//! Keys, certificates and listeners over their lives.

mod stored;
mod streams;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use frazil_rig::Certificates;
use frazil_server::keys::Role;
use frazil_server::{App, BindError, TlsFiles};
use frazil_wire::proto::NextRequest;
use frazil_wire::proto::id_service_client::IdServiceClient;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::Channel;

use crate::site::secured::{Keys, client};
use crate::site::{Reply, Site, config, request, send};

async fn keyed(keys: &Keys) -> Site {
    Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.open_metrics = true;
        config.scopes = vec!["orders".into(), "users".into()];
    })
    .await
}

async fn post(address: SocketAddr, path: &str, key: &str) -> Reply {
    let shown = format!("Bearer {key}");
    request(address, "POST", path, &[("authorization", shown.as_str())], b"").await
}

/// A RESP client that reads line by line.
struct RespClient(BufReader<TcpStream>);

impl RespClient {
    async fn new(site: &Site) -> Self {
        Self(BufReader::new(TcpStream::connect(site.addrs.resp.unwrap()).await.unwrap()))
    }

    async fn say(&mut self, command: &str) -> String {
        self.0.get_mut().write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }
}

#[tokio::test]
async fn keys_come_and_go_without_a_restart() {
    let mut keys = Keys::new();
    let old = keys.add("old", Role::Ids);
    let site = keyed(&keys).await;
    let mut talk = RespClient::new(&site).await;
    assert!(talk.say("INCR x").await.starts_with("-NOAUTH "));
    assert!(talk.say("AUTH frz_00_11").await.starts_with("-WRONGPASS "));
    assert!(talk.say(&format!("AUTH somebody {old}")).await.starts_with("-WRONGPASS "));
    assert_eq!(talk.say(&format!("AUTH old {old}")).await, "+OK");
    assert!(talk.say("INCR x").await.starts_with(':'));
    assert_eq!(post(site.http(), "/ids", &old).await.status, 200);
    // Both are known while clients move from one to the other.
    let new = keys.add("new", Role::Ids);
    assert_eq!(post(site.http(), "/ids", &new).await.status, 401);
    site.reloader.reload().unwrap();
    for key in [&old, &new] {
        assert_eq!(post(site.http(), "/ids", key).await.status, 200);
    }
    keys.revoke("old");
    site.reloader.reload().unwrap();
    assert_eq!(post(site.http(), "/ids", &old).await.status, 401);
    assert!(talk.say("INCR x").await.starts_with("-NOAUTH "), "a connection outlived its key");
    assert_eq!(talk.say(&format!("HELLO 3 AUTH default {new}")).await, "%7");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_file_of_keys_that_makes_no_sense_changes_nothing() {
    let mut keys = Keys::new();
    let key = keys.add("orders", Role::Ids);
    let site = keyed(&keys).await;
    std::fs::write(keys.path(), "[[key]]\nid = \"a_\"\nroles = []\n").unwrap();
    let problems = site.reloader.reload().unwrap_err();
    assert!(problems[0].contains("keys.toml:1: "), "{problems:?}");
    assert_eq!(post(site.http(), "/ids", &key).await.status, 200);
    std::fs::remove_file(keys.path()).unwrap();
    assert!(site.reloader.reload().is_err());
    assert_eq!(post(site.http(), "/ids", &key).await.status, 200);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn an_expired_key_is_told_when_it_ended() {
    let mut keys = Keys::new();
    let end = |entry: &mut frazil_server::keys::KeyEntry| {
        entry.expires = Some("2020-01-01T00:00:00Z".to_owned());
    };
    let key = keys.add_with("old", Role::Ids, end);
    let site = keyed(&keys).await;
    let reply = post(site.http(), "/ids", &key).await;
    assert_eq!(reply.reason(), "UNAUTHENTICATED");
    assert!(reply.text().contains("expired at 2020-01-01T00:00:00Z"), "{}", reply.text());
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_quota_counts_ids_and_says_when_there_are_more() {
    let mut keys = Keys::new();
    let set = |entry: &mut frazil_server::keys::KeyEntry| {
        entry.ids_per_second = 1000.try_into().ok();
    };
    let key = keys.add_with("small", Role::Ids, set);
    let site = keyed(&keys).await;
    let first = post(site.http(), "/ids?count=1000", &key).await;
    assert_eq!((first.status, &*first.headers["ratelimit-policy"]), (200, "\"ids\";q=1000;w=1"));
    assert_eq!(first.headers["ratelimit"], "\"ids\";r=0;t=1");
    let second = post(site.http(), "/ids?count=1000", &key).await;
    assert_eq!((second.status, second.reason().as_str()), (429, "QUOTA_EXCEEDED"));
    assert_eq!(second.headers["retry-after"], "1");
    assert_eq!(second.headers["ratelimit"], "\"ids\";r=0;t=1");
    // No wait helps here: a client that tried again would try for ever.
    let never = post(site.http(), "/ids?count=1001", &key).await;
    assert_eq!((never.status, never.reason().as_str()), (400, "COUNT_OUT_OF_RANGE"));
    assert_eq!(never.headers.get("retry-after"), None);
    let mut talk = RespClient::new(&site).await;
    assert_eq!(talk.say(&format!("AUTH {key}")).await, "+OK");
    let refused = talk.say("ID.NEXT 1000").await;
    assert!(refused.starts_with("-QUOTA_EXCEEDED retry_after_ms="), "{refused}");
    let address = format!("http://{}", site.addrs.grpc.unwrap());
    let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
    let mut grpc = IdServiceClient::new(channel);
    let mut next = tonic::Request::new(NextRequest { count: Some(1000), ..NextRequest::default() });
    next.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    let status = grpc.next(next).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::ResourceExhausted);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_key_for_some_scopes_gets_ids_of_those_alone() {
    let mut keys = Keys::new();
    let set = |entry: &mut frazil_server::keys::KeyEntry| {
        entry.scopes = Some(vec!["orders".to_owned()]);
    };
    let key = keys.add_with("shop", Role::Ids, set);
    let site = keyed(&keys).await;
    assert_eq!(post(site.http(), "/ids?scope=orders", &key).await.status, 200);
    for path in ["/ids", "/ids?scope=users"] {
        let reply = post(site.http(), path, &key).await;
        assert_eq!((reply.status, reply.reason().as_str()), (403, "FORBIDDEN"), "{path}");
    }
    let mut talk = RespClient::new(&site).await;
    assert_eq!(talk.say(&format!("AUTH {key}")).await, "+OK");
    assert!(talk.say("INCR x").await.starts_with("-NOPERM FORBIDDEN: "));
    assert!(talk.say("ID.NEXT SCOPE orders AS INT").await.starts_with(':'));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn nobody_else_is_let_near_without_tls_and_keys() {
    let certificates = Certificates::generate().unwrap();
    let keys = Keys::new();
    let tls =
        TlsFiles::new(certificates.server_cert().to_owned(), certificates.server_key().to_owned());
    let exposed = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
    for (has_tls, has_keys, is_insecure, may) in [
        (false, false, false, false),
        (true, false, false, false),
        (false, true, false, false),
        (true, true, false, true),
        (false, false, true, true),
    ] {
        for listener in 0..4 {
            let mut config = config("memory:");
            let listeners =
                [&mut config.http, &mut config.grpc, &mut config.resp, &mut config.admin];
            *listeners.into_iter().nth(listener).unwrap() = exposed;
            config.tls = has_tls.then(|| tls.clone());
            config.keys = has_keys.then(|| keys.path().into());
            config.insecure = is_insecure;
            match App::bind(config).await {
                Ok(_) => {
                    assert!(may && (has_keys || listener != 3), "{has_tls} {has_keys} {listener}")
                }
                Err(BindError::Exposed(_)) => assert!(!may, "{has_tls} {has_keys} {listener}"),
                // Whatever is said, nobody administers from elsewhere without a key.
                Err(error @ BindError::AdminWithoutKeys(_)) => {
                    assert!(listener == 3 && !has_keys, "{has_tls} {has_keys} {listener}");
                    let told = error.to_string();
                    assert!(
                        told.contains("frazil key new") && told.contains("127.0.0.1"),
                        "{told}"
                    );
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test]
async fn administrators_have_a_door_of_their_own_if_they_want_one() {
    let site = Site::start_with(|config| {
        config.admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    })
    .await;
    let admin = site.addrs.admin.unwrap();
    let host = admin.to_string();
    let path = "/v1/node:rotate";
    let front = request(site.http(), "POST", path, &[], b"").await;
    assert_eq!((front.status, front.reason().as_str()), (404, "NOT_FOUND"));
    let plain = |host: &str, more: &str| {
        format!("POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n")
    };
    // Pages in the operator's browser are no operators.
    let foreign = send(admin, plain(&host, "origin: https://evil.example\r\n").as_bytes()).await;
    assert_eq!((foreign.status, foreign.reason().as_str()), (403, "FORBIDDEN"));
    let rebound = send(admin, plain("evil.example", "").as_bytes()).await;
    assert_eq!((rebound.status, rebound.reason().as_str()), (403, "FORBIDDEN"));
    let rotated = send(admin, plain(&host, "").as_bytes()).await;
    assert_eq!(rotated.status, 200, "{}", rotated.text());
    let moved = &rotated.json()["moved"][0];
    assert_ne!(moved["from"], moved["to"]);
    site.stop().await.unwrap();
    // Without keys and without such a door nobody administers.
    let site = Site::start().await;
    let front = request(site.http(), "POST", path, &[], b"").await;
    assert_eq!((front.status, front.reason().as_str()), (403, "FORBIDDEN"));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_drained_node_holds_nothing_and_still_answers_probes() {
    let mut keys = Keys::new();
    let (ids, admin) = (keys.add("app", Role::Ids), keys.add("operator", Role::Admin));
    let site = keyed(&keys).await;
    let issued = post(site.http(), "/ids", &ids).await.json();
    let worker = issued["metadata"]["worker"].as_u64().unwrap();
    let drained = post(site.http(), "/v1/node:drain", &admin).await;
    assert_eq!(drained.status, 200);
    assert_eq!(drained.json()["released"], serde_json::json!([worker]));
    assert_eq!(site.get("/readyz").await.text(), "draining\n");
    assert_eq!(site.get("/livez").await.status, 200);
    let refused = post(site.http(), "/ids", &ids).await;
    assert_eq!((refused.status, refused.reason().as_str()), (503, "DRAINING"));
    // Nothing says that it could issue.
    for metric in ["frazil_issuable_seconds", "frazil_lanes"] {
        assert!(site.metric(metric).await.abs() < f64::EPSILON, "{metric}");
    }
    assert!(!site.get("/readyz?verbose").await.text().contains("[+] lane"));
    let again = post(site.http(), "/v1/node:drain", &admin).await;
    assert_eq!((again.status, &again.json()["released"]), (200, &serde_json::json!([])));
    let url = format!("file:{}", site.directory().display()).parse().unwrap();
    let store = frazil::coord::look(&url, &frazil::coord::Namespace::default()).await.unwrap();
    let entries = store.list(frazil::coord::Group::Workers).await.unwrap();
    let is_held = |entry: &frazil::coord::Entry| {
        matches!(entry.presence, frazil::coord::Presence::Held { .. })
    };
    assert!(!entries.is_empty() && !entries.iter().any(is_held));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_worker_is_released_by_its_holder_and_by_its_token() {
    let mut keys = Keys::new();
    let admin = keys.add("operator", Role::Admin);
    let site = keyed(&keys).await;
    let url = format!("file:{}", site.directory().display());
    let other = frazil::Node::builder().store(&url).holder("another").start();
    let other = other.await.unwrap();
    let elsewhere = other.info().lanes[0].status.grant.unwrap().worker;
    let shown = format!("Bearer {admin}");
    let shown = [("authorization", shown.as_str())];
    let info = request(site.http(), "GET", "/v1/info", &shown, b"").await.json();
    let (worker, token) =
        (&info["lanes"][0]["worker"], info["lanes"][0]["token"].as_str().unwrap());
    for (path, status, reason) in [
        (format!("/v1/workers/{elsewhere}:release"), 409, "HELD_BY_OTHER"),
        ("/v1/workers/1023:release".to_owned(), 404, "NOT_FOUND"),
        (format!("/v1/workers/{worker}:release?token=1{token}"), 409, "TOKEN_STALE"),
        (format!("/v1/workers/{worker}:release?token=x"), 400, "INVALID_ARGUMENT"),
        ("/v1/workers/x:release".to_owned(), 400, "INVALID_ARGUMENT"),
    ] {
        let reply = post(site.http(), &path, &admin).await;
        assert_eq!((reply.status, reply.reason().as_str()), (status, reason), "{path}");
    }
    let path = format!("/v1/workers/{worker}:release?token={token}");
    let reply = post(site.http(), &path, &admin).await;
    assert_eq!((reply.status, &reply.json()["moved"][0]["from"]), (200, worker));
    other.shutdown().await;
    site.stop().await.unwrap();
}

async fn shake(address: SocketAddr, config: Arc<ClientConfig>) -> std::io::Result<()> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(config).connect(name, stream).await?;
    // With TLS 1.3 a client hears only now that its certificate was not liked.
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    Ok(())
}

#[tokio::test]
async fn certificates_are_replaced_without_a_restart() {
    let (old, new) = (Certificates::generate().unwrap(), Certificates::generate().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let (cert, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    let put = |certificates: &Certificates| {
        std::fs::copy(certificates.server_cert(), &cert).unwrap();
        std::fs::copy(certificates.server_key(), &key).unwrap();
    };
    put(&old);
    let tls = TlsFiles::new(cert.clone(), key.clone());
    let site = Site::start_with(|config| config.tls = Some(tls)).await;
    let trust = |certificates: &Certificates| client(certificates.ca(), None, b"");
    shake(site.http(), trust(&old)).await.unwrap();
    // A key that does not belong to the certificate changes nothing.
    std::fs::copy(new.server_key(), &key).unwrap();
    assert!(site.reloader.reload().is_err());
    shake(site.http(), trust(&old)).await.unwrap();
    put(&new);
    site.reloader.reload().unwrap();
    shake(site.http(), trust(&new)).await.unwrap();
    assert!(shake(site.http(), trust(&old)).await.is_err());
    site.stop().await.unwrap();
}

#[tokio::test]
async fn only_clients_of_the_right_authority_are_let_in() {
    let (own, foreign) = (Certificates::generate().unwrap(), Certificates::generate().unwrap());
    let site = Site::start_with(|config| {
        config.tls = Some(
            TlsFiles::new(own.server_cert().to_owned(), own.server_key().to_owned())
                .with_client_ca(own.ca().to_owned()),
        );
    })
    .await;
    let shown = |certificates: &Certificates| {
        let (cert, key) = (certificates.client_cert(), certificates.client_key());
        client(own.ca(), Some((cert as &Path, key as &Path)), b"")
    };
    shake(site.http(), shown(&own)).await.unwrap();
    assert!(shake(site.http(), client(own.ca(), None, b"")).await.is_err());
    assert!(shake(site.http(), shown(&foreign)).await.is_err());
    site.stop().await.unwrap();
}

#[tokio::test]
async fn who_speaks_plainly_to_a_tls_port_or_tls_to_a_plain_one_is_told() {
    let certificates = Certificates::generate().unwrap();
    let secured = Site::start_with(|config| {
        config.tls = Some(TlsFiles::new(
            certificates.server_cert().to_owned(),
            certificates.server_key().to_owned(),
        ));
    })
    .await;
    let reply = secured.get("/livez").await;
    assert_eq!((reply.status, reply.text().trim()), (400, "this port speaks TLS: use https://"));
    let mut talk = RespClient::new(&secured).await;
    assert!(talk.say("PING").await.starts_with("-ERR this port speaks TLS"));
    secured.stop().await.unwrap();
    let plain = Site::start().await;
    for address in [plain.addrs.http, plain.addrs.grpc, plain.addrs.resp] {
        let trust = client(certificates.ca(), None, b"");
        // Told at once, and not by a timeout: each is ten seconds at least.
        let shaking = shake(address.unwrap(), trust);
        let told = tokio::time::timeout(std::time::Duration::from_secs(8), shaking).await;
        assert!(told.expect("an answer").is_err());
    }
    plain.stop().await.unwrap();
}

#[tokio::test]
async fn every_key_learns_where_the_nodes_are_and_no_more() {
    let mut keys = Keys::new();
    let (client, reader) = (keys.add("client", Role::Ids), keys.add("reader", Role::Read));
    let site = Site::start_with(|config| {
        config.keys = Some(keys.path().into());
        config.zone = Some("eu-1a".to_owned());
        config.region = Some("eu".to_owned());
    })
    .await;
    let read = async |path: &str, key: &str| {
        let shown = format!("Bearer {key}");
        let reply = request(site.http(), "GET", path, &[("authorization", &shown)], b"").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    let at = format!("http://{}", site.http());
    let address = serde_json::json!({ "name": "tested", "advertise": at, "zone": "eu-1a" });
    let told = read("/v1/cluster", &client).await;
    assert_eq!(told["nodes"], serde_json::json!([address]));
    assert!(told.get("workers").is_none(), "{told}");
    // Clients read it as they read the whole.
    let understood: frazil_wire::Cluster = serde_json::from_value(told).unwrap();
    assert_eq!(understood.nodes[0].zone.as_deref(), Some("eu-1a"));
    let whole = read("/v1/cluster", &reader).await;
    let node = &whole["nodes"][0];
    assert_eq!((&node["advertise"], &node["zone"]), (&address["advertise"], &address["zone"]));
    assert!(node["host"].is_string() && node["version"].is_string(), "{node}");
    assert!(node["workers"][0].is_number() && whole["workers"]["held"] == 1, "{whole}");
    assert_eq!(read("/v1/info", &client).await["node"]["zone"], "eu-1a");
    site.stop().await.unwrap();
}
