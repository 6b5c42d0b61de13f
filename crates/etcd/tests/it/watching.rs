//! Watches of keys.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use frazil_etcd::{
    Client, Code, Config, EventType, FilterType, Login, RequestOp, Watch, WatchCreateRequest,
};
use frazil_rig::{Etcd, Proxy, wait_until};

use crate::requests::{all, connect, put};

async fn next(watch: &mut Watch) -> (EventType, Vec<u8>) {
    let mut changes = watch.changes().await.unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    let change = changes.remove(0);
    (change.r#type(), change.kv.unwrap().key)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_range_is_watched_at_once_without_what_is_filtered() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd);
    let deletions = vec![FilterType::Noput.into()];
    let ranges = [
        WatchCreateRequest::prefix("a/"),
        WatchCreateRequest { filters: deletions, ..WatchCreateRequest::key("b") },
    ];
    let mut watch = client.watch(&ranges).await.unwrap();
    for key in ["other", "b", "a/1"] {
        put(&client, key, "text").await;
    }
    client.txn(&all([RequestOp::delete("b")])).await.unwrap();
    let (mut told, key) = (vec![next(&mut watch).await, next(&mut watch).await], b"a/1".to_vec());
    // Ranges are told of in an order of their own.
    told.sort_by_key(|(kind, _)| *kind);
    assert_eq!(told, [(EventType::Put, key), (EventType::Delete, b"b".to_vec())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_dropped_ends_on_the_server_too() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd);
    let watch = client.watch(&[WatchCreateRequest::key("key")]).await.unwrap();
    assert_eq!(watchers(&etcd), 1);
    drop(watch);
    wait_until("the end", Duration::from_secs(20), || watchers(&etcd) == 0).unwrap();
    client.status().await.unwrap();
}

/// How many ranges are watched, as the server counts them itself.
fn watchers(etcd: &Etcd) -> u64 {
    let mut stream = TcpStream::connect(etcd.address()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let mut counts =
        page.lines().filter(|line| line.starts_with("etcd_debugging_mvcc_watcher_total"));
    counts.find_map(|line| line.rsplit(' ').next()?.parse().ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_with_its_connection() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    let client = Client::new(&proxy.address(), &Config::default()).unwrap();
    let mut watch = client.watch(&[WatchCreateRequest::key("key")]).await.unwrap();
    proxy.cut();
    watch.changes().await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_a_user_may_not_read_are_refused() {
    let etcd = Etcd::builder().with_auth("root", "open-sesame").start().unwrap();
    etcd.etcdctl(&["user", "add", "few:little-sesame"]).unwrap();
    let login = Login { user: "few".into(), password: "little-sesame".into() };
    let mut config = Config::default();
    config.login = Some(login);
    let client = Client::new(&etcd.address(), &config).unwrap();
    let refused = client.watch(&[WatchCreateRequest::key("key")]).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
}
