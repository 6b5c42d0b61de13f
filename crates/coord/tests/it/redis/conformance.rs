//! The contract, in every set-up.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use frazil_conformance::{self as conformance, Subject, Violation};
use frazil_coord::internal::Tenure;
use frazil_coord::internal::stores::redis::RedisStore;
use frazil_coord::{Error, Namespace, Slot, Store};
use frazil_rig::{AppendOnly, Certificates, Proxy, Redis, RedisCluster, Sentinels};

use crate::redis::lab::replica_of;

struct Server<'a> {
    url: String,
    /// Whoever has the keys.
    nodes: Vec<&'a Redis>,
    /// What cuts clients off.
    cut: Mutex<Option<Proxy>>,
}

impl std::fmt::Debug for Server<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url)
    }
}

impl Server<'_> {
    fn cli(&self, arguments: &[&str]) -> Vec<String> {
        // Nodes of a cluster that do not have a key say so, and are not meant.
        let said = self.nodes.iter().map(|node| node.cli(arguments).unwrap());
        let said = said.filter(|said| !said.contains("MOVED"));
        said.flat_map(|said| said.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }
}

/// Makes the time of a presence run out: in the record and in the index by expiry.
const LAPSE: &str = "
    local text, changed = redis.call('HGET', KEYS[1], ARGV[1]), 0
    if text and string.find(text, ARGV[2], 1, true) then
        text, changed = string.gsub(text, '\"expires\":%d+', '\"expires\":1')
        redis.call('HSET', KEYS[1], ARGV[1], text)
        redis.call('ZADD', KEYS[2], 'XX', 1, ARGV[1])
    end
    return changed";

#[async_trait]
impl Subject for Server<'_> {
    async fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
        let url = self.url.parse().unwrap();
        Ok(Arc::new(RedisStore::connect(&url, namespace).await?))
    }

    async fn lapse(&self, _: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation> {
        let letter = tenure.slot.group().letter();
        let mut changed = 0;
        for records in self.cli(&["KEYS", &format!("*:{letter}")]) {
            let held = format!("{records}:held");
            let (name, nonce) = (tenure.slot.name(), tenure.nonce.to_string());
            let said = self.cli(&["EVAL", LAPSE, "2", &records, &held, name, &nonce]);
            changed += said.iter().filter(|line| line.trim() == "1").count();
        }
        if changed == 1 { Ok(()) } else { Err(Violation::new(format!("{changed} lapsed"))) }
    }

    async fn forget(&self, namespace: &Namespace, slot: &Slot) -> Result<(), Violation> {
        let records = format!("{{frazil:{namespace}}}:{}", slot.group().letter());
        let said = self.cli(&["HDEL", &records, slot.name()]);
        if said == ["1"] { Ok(()) } else { Err(Violation::new(format!("{said:?}"))) }
    }

    async fn unreachable(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<Arc<dyn Store>>, Violation> {
        let [node] = self.nodes.as_slice() else { return Ok(None) };
        if !self.url.contains(&node.address()) {
            // Behind Sentinel and in a cluster the address of the master is found, not given.
            return Ok(None);
        }
        let proxy = Proxy::start(node.address()).map_err(Violation::new)?;
        let near = self.url.replace(&node.address(), &proxy.address());
        let mark = if near.contains('?') { '&' } else { '?' };
        let url = format!("{near}{mark}timeout=500ms").parse().map_err(Violation::new)?;
        let store = RedisStore::connect(&url, namespace).await?;
        proxy.cut();
        *self.cut.lock().unwrap() = Some(proxy);
        Ok(Some(Arc::new(store)))
    }

    async fn wipe(&self, namespace: &Namespace) -> Result<(), Violation> {
        for key in self.cli(&["KEYS", &format!("{{frazil:{namespace}}}*")]) {
            self.cli(&["DEL", &key]);
        }
        Ok(())
    }
}

async fn conforms(url: String, nodes: Vec<&Redis>) {
    let server = Server { url, nodes, cut: Mutex::default() };
    conformance::run(&server).await.unwrap_or_else(|violation| panic!("{violation}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_conforms() {
    let redis = Redis::start().unwrap();
    conforms(redis.url(), vec![&redis]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_with_a_synced_log_conforms() {
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    conforms(redis.url(), vec![&redis]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_with_a_log_synced_once_a_second_conforms() {
    let redis = Redis::builder().persistent(AppendOnly::EverySecond).start().unwrap();
    conforms(redis.url(), vec![&redis]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_with_tls_and_a_password_conforms() {
    let certificates = Certificates::generate().unwrap();
    let redis = Redis::builder().tls(&certificates).password("hunter2").start().unwrap();
    let url = format!(
        "rediss://:hunter2@{}?ca={}&cert={}&key={}",
        redis.address(),
        certificates.ca().display(),
        certificates.client_cert().display(),
        certificates.client_key().display()
    );
    conforms(url, vec![&redis]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_behind_sentinels_conforms() {
    let master = Redis::start().unwrap();
    let _replica = replica_of(&master);
    let sentinels = Sentinels::start(&master).unwrap();
    conforms(format!("{}?durability=wait:1", sentinels.url()), vec![&master]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_conforms() {
    let cluster = RedisCluster::start(3).unwrap();
    conforms(cluster.url(), cluster.nodes().iter().collect()).await;
}
