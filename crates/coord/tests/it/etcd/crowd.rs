//! A thousand claims at once.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use frazil_coord::internal::time::boot_time;
use frazil_coord::internal::{Acquired, Leasing};
use frazil_rig::Etcd;
use tokio::task::JoinSet;

use crate::etcd::world::{any, connect, open};

const CLAIMS: usize = 1024;
const CONNECTIONS: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_claims_at_once_get_distinct_workers() {
    let etcd = Etcd::start().unwrap();
    let (_first, namespace, meta) = open(&etcd.url()).await;
    let mut stores = Vec::new();
    for _ in 0..CONNECTIONS {
        stores.push(Arc::new(connect(&format!("{}?timeout=15s", etcd.url()), &namespace).await));
    }
    let (requests, start) = (requests(&etcd), boot_time());
    let mut claims = JoinSet::new();
    for index in 0..CLAIMS {
        let store = Arc::clone(&stores[index % CONNECTIONS]);
        claims.spawn(async move { store.acquire(&any(meta)).await.unwrap() });
    }
    let mut taken = BTreeSet::new();
    while let Some(acquired) = claims.join_next().await {
        match acquired.unwrap() {
            Acquired::Held(tenure) => assert!(taken.insert(tenure.slot), "a worker twice"),
            other => panic!("wanted a tenure, got {other:?}"),
        }
    }
    assert_eq!(taken.len(), CLAIMS);
    let (took, cost) = (boot_time() - start, self::requests(&etcd) - requests);
    println!("{CLAIMS} claims over {CONNECTIONS} connections: {took:?}, {cost} requests");
    let last = stores[0].acquire(&any(meta)).await.unwrap();
    assert!(matches!(last, Acquired::Full(census) if census.held == 1024), "{last:?}");
}

/// How many requests the server has been sent, as it counts them itself.
pub(crate) fn requests(etcd: &Etcd) -> u64 {
    let mut stream = TcpStream::connect(etcd.address()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let counts = page.lines().filter(|line| line.starts_with("grpc_server_started_total"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}
