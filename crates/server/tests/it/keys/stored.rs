//! Keys in the namespace's store: whoever is let in, and for how long.

use std::sync::Arc;
use std::time::Duration;

use frazil::coord::Copied;
use frazil::coord::internal::time::boot_time;
use frazil::coord::{Namespace, Store};
use frazil_rig::{AppendOnly, Certificates, Redis};
use frazil_server::keys::{KeyEntry, KeySource, NewKey, Role, StoredKeys};
use frazil_server::{App, BindError, NodeState, TlsFiles};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{RespClient, post};
use crate::site::secured::{client, text_of};
use crate::site::{Site, config, request};

/// How long a change may take to reach every node.
const REACH: Duration = Duration::from_secs(1);
/// How long a test waits for what has no bound.
const PATIENCE: Duration = Duration::from_secs(30);

/// The list of a store, as an operator changes it.
struct List {
    store: Arc<dyn Store>,
    entries: Vec<KeyEntry>,
}

impl List {
    async fn of(url: &str) -> Self {
        let url = url.parse().unwrap();
        let store = frazil::coord::open(&url, &Namespace::default(), Copied::Refuse).await.unwrap();
        Self { store, entries: Vec::new() }
    }

    async fn add(&mut self, name: &str, change: impl FnOnce(&mut KeyEntry)) -> String {
        let key = NewKey::mint().unwrap();
        let mut entry = KeyEntry::of(&key, name, vec![Role::Ids, Role::Read]);
        change(&mut entry);
        self.entries.push(entry);
        self.write().await;
        key.text().to_owned()
    }

    async fn revoke(&mut self, name: &str) {
        self.entries.retain(|entry| entry.name != name);
        self.write().await;
    }

    async fn write(&self) {
        let seen = StoredKeys::load(self.store.as_ref()).await.unwrap();
        let text: String = self.entries.iter().map(text_of).collect();
        assert!(seen.replace(self.store.as_ref(), &text).await.unwrap());
    }
}

async fn begun(name: &str, url: &str) -> Site {
    Site::begin(|config| {
        *config = crate::site::config(url);
        config.name = name.to_owned();
        config.keys = Some(KeySource::Store);
        config.open_metrics = true;
    })
    .await
}

/// Waits until a request with the key is answered so, and says how long that took.
async fn until(site: &Site, key: &str, status: u16, limit: Duration) -> Duration {
    let began = boot_time();
    loop {
        let reply = post(site.http(), "/ids", key).await;
        let took = boot_time().saturating_sub(began);
        if reply.status == status {
            return took;
        }
        assert!(took < limit, "{} after {took:?}: {}", reply.status, reply.text());
    }
}

#[tokio::test]
async fn without_a_key_in_the_store_nobody_is_let_in_but_probes() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let mut site = begun("alone", &url).await;
    site.wait_for(NodeState::Ready).await;
    until(&site, "frz_00000000_00", 401, PATIENCE).await;
    for (path, status) in [("/livez", 200), ("/readyz", 200), ("/v1/info", 401)] {
        assert_eq!(site.get(path).await.status, status, "{path}");
    }
    let mut list = List::of(&url).await;
    let key = list.add("first", |_| {}).await;
    until(&site, &key, 200, PATIENCE).await;
    let shown = format!("Bearer {key}");
    let shown = [("authorization", shown.as_str())];
    let verbose = request(site.http(), "GET", "/readyz?verbose", &shown, b"").await.text();
    assert!(verbose.contains("[+] keys: read from the store "), "{verbose}");
    site.stop().await.unwrap();
}

/// A client that hears WRONGPASS or NOAUTH throws its password away, or gives up; it should try again.
#[tokio::test]
async fn before_the_keys_were_read_resp_clients_are_told_so_and_not_that_theirs_is_wrong() {
    let certificates = Certificates::generate().unwrap();
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    redis.kill();
    let tls =
        TlsFiles::new(certificates.server_cert().to_owned(), certificates.server_key().to_owned())
            .with_client_ca(certificates.ca().to_owned());
    let mut site = Site::begin(|config| {
        *config = crate::site::config(&redis.url());
        config.keys = Some(KeySource::Store);
        config.tls = Some(tls);
        config.limits.auth_timeout = Duration::from_secs(3600);
    })
    .await;
    let own = (certificates.client_cert(), certificates.client_key());
    let config = client(certificates.ca(), Some(own), b"");
    let stream = TcpStream::connect(site.addrs.resp.unwrap()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(config).connect(name, stream).await.unwrap();
    let mut stream = BufReader::new(stream);
    let mut say = async |command: &str| {
        stream.get_mut().write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    };
    let (auth, hello) = ("AUTH frz_00000000_00", "HELLO 3 AUTH default frz_00000000_00");
    for command in [auth, hello, "HELLO 3", "INCR x", "ID.NEXT 5"] {
        let told = say(command).await;
        assert!(told.starts_with("-STORE_UNAVAILABLE retry_after_ms="), "{command}: {told}");
    }
    redis.restart().unwrap();
    site.wait_for(NodeState::Ready).await;
    let mut list = List::of(&redis.url()).await;
    let subject = |entry: &mut KeyEntry| entry.certificate_subject = Some("CN=client".to_owned());
    let key = list.add("app", subject).await;
    let began = boot_time();
    loop {
        let told = say("INCR x").await;
        if told.starts_with(':') {
            break;
        }
        assert!(boot_time().saturating_sub(began) < PATIENCE, "{told}");
    }
    assert!(say(auth).await.starts_with("-WRONGPASS "), "now it is known");
    assert_eq!(say(&format!("AUTH {key}")).await, "+OK");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_revoked_key_opens_nothing_on_any_node_within_a_second() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let mut sites = [begun("one", &url).await, begun("other", &url).await];
    let mut list = List::of(&url).await;
    let (key, kept) = (list.add("app", |_| {}).await, list.add("kept", |_| {}).await);
    let mut talks = Vec::new();
    for site in &mut sites {
        site.wait_for(NodeState::Ready).await;
        until(site, &key, 200, PATIENCE).await;
        let mut talk = RespClient::new(site).await;
        assert_eq!(talk.say(&format!("AUTH {key}")).await, "+OK");
        talks.push(talk);
    }
    list.revoke("app").await;
    for (site, talk) in sites.iter().zip(&mut talks) {
        until(site, &key, 401, REACH).await;
        assert!(talk.say("INCR x").await.starts_with("-NOAUTH "), "a connection outlived its key");
        assert_eq!(post(site.http(), "/ids", &kept).await.status, 200);
    }
    for site in sites {
        site.stop().await.unwrap();
    }
}

#[tokio::test]
async fn keys_stay_in_force_while_the_store_is_away_and_grow_old() {
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    let mut site = begun("one", &redis.url()).await;
    site.wait_for(NodeState::Ready).await;
    let mut list = List::of(&redis.url()).await;
    let key = list.add("app", |_| {}).await;
    until(&site, &key, 200, PATIENCE).await;
    redis.pause().unwrap();
    let began = boot_time();
    // Older than it ever gets while the store is there.
    while site.metric("frazil_keys_age_seconds").await < 6.0 {
        assert!(boot_time().saturating_sub(began) < PATIENCE, "the keys do not grow old");
        assert_eq!(post(site.http(), "/ids", &key).await.status, 200);
    }
    redis.resume().unwrap();
    while site.metric("frazil_keys_age_seconds").await > 5.0 {
        assert!(boot_time().saturating_sub(began) < 2 * PATIENCE, "the keys stay old");
    }
    list.revoke("app").await;
    until(&site, &key, 401, PATIENCE).await;
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_list_that_the_store_forgot_stays_in_force_and_another_one_replaces_it() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let mut site = begun("one", &url).await;
    site.wait_for(NodeState::Ready).await;
    let mut list = List::of(&url).await;
    let key = list.add("app", |_| {}).await;
    until(&site, &key, 200, PATIENCE).await;
    std::fs::remove_file(directory.path().join("default/k/all")).unwrap();
    let seen = StoredKeys::load(list.store.as_ref()).await.unwrap();
    assert!(seen.is_lost, "{seen:?}");
    // Older than it ever gets while the list is there: it was looked for, and not found.
    let began = boot_time();
    while site.metric("frazil_keys_age_seconds").await < 6.0 {
        assert!(boot_time().saturating_sub(began) < PATIENCE, "the keys do not grow old");
        assert_eq!(post(site.http(), "/ids", &key).await.status, 200);
    }
    list.entries.clear();
    let other = list.add("other", |_| {}).await;
    until(&site, &other, 200, PATIENCE).await;
    assert_eq!(post(site.http(), "/ids", &key).await.status, 401);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_quota_of_the_cluster_is_divided_by_the_nodes_that_live() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let mut one = begun("one", &url).await;
    one.wait_for(NodeState::Ready).await;
    let mut list = List::of(&url).await;
    let key = list.add("app", |entry| entry.ids_per_second_cluster = 1000.try_into().ok()).await;
    let policy = async |site: &Site, policy: &str| {
        let began = boot_time();
        loop {
            let reply = post(site.http(), "/ids", &key).await;
            if reply.headers.get("ratelimit-policy").is_some_and(|told| told == policy) {
                return;
            }
            let took = boot_time().saturating_sub(began);
            assert!(took < PATIENCE, "{reply:?} after {took:?}");
        }
    };
    policy(&one, "\"ids\";q=1000;w=1").await;
    let mut other = begun("other", &url).await;
    other.wait_for(NodeState::Ready).await;
    for site in [&one, &other] {
        policy(site, "\"ids\";q=500;w=1").await;
    }
    other.stop().await.unwrap();
    policy(&one, "\"ids\";q=1000;w=1").await;
    one.stop().await.unwrap();
}

#[tokio::test]
async fn keys_cannot_be_in_a_store_that_nobody_else_can_write_to() {
    let mut config = config("memory:");
    config.keys = Some(KeySource::Store);
    let refused = App::bind(config).await.unwrap_err();
    assert!(matches!(refused, BindError::KeysInMemory), "{refused}");
}
