//! The contract, on one member and on three.

use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use frazil_conformance::{self as conformance, Subject, Violation};
use frazil_coord::internal::Tenure;
use frazil_coord::internal::stores::etcd::EtcdStore;
use frazil_coord::{Error, Namespace, Slot, Store};
use frazil_rig::{Etcd, EtcdCluster, Proxy};

type Control<'a> = &'a (dyn Fn(&[&str]) -> io::Result<String> + Send + Sync);

struct Server<'a> {
    url: String,
    etcdctl: Control<'a>,
    /// What cuts clients off.
    cut: Mutex<Vec<Proxy>>,
}

impl std::fmt::Debug for Server<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url)
    }
}

impl Server<'_> {
    fn control(&self, arguments: &[&str]) -> Result<String, Violation> {
        (self.etcdctl)(arguments).map_err(Violation::new)
    }
}

#[async_trait]
impl Subject for Server<'_> {
    async fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
        let url = self.url.parse().expect("the rig's URLs are well formed");
        Ok(Arc::new(EtcdStore::connect(&url, namespace).await?))
    }

    async fn lapse(&self, _: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation> {
        let all = self.control(&["get", "--prefix", "/frazil/", "-w", "fields"])?;
        let lease = lease_of(&all, tenure)
            .ok_or_else(|| Violation::new("presence hangs on no lease, or is gone"))?;
        self.control(&["lease", "revoke", &format!("{lease:x}")]).map(drop)
    }

    async fn forget(&self, namespace: &Namespace, slot: &Slot) -> Result<(), Violation> {
        for key in
            [format!("/frazil/{namespace}/{slot}"), format!("/frazil/{namespace}/own/{slot}")]
        {
            self.control(&["del", &key])?;
        }
        Ok(())
    }

    async fn unreachable(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<Arc<dyn Store>>, Violation> {
        let hosts = self.url.trim_start_matches("etcd://").split(',');
        let proxies: Result<Vec<_>, _> = hosts.map(Proxy::start).collect();
        let proxies = proxies.map_err(Violation::new)?;
        let near: Vec<_> = proxies.iter().map(Proxy::address).collect();
        let url = format!("etcd://{}?timeout=500ms", near.join(","));
        let url = url.parse().map_err(Violation::new)?;
        let store = EtcdStore::connect(&url, namespace).await?;
        proxies.iter().for_each(Proxy::cut);
        *self.cut.lock().unwrap() = proxies;
        Ok(Some(Arc::new(store)))
    }

    async fn wipe(&self, namespace: &Namespace) -> Result<(), Violation> {
        self.control(&["del", "--prefix", &format!("/frazil/{namespace}/")]).map(drop)
    }
}

/// The lease of the key whose value is the tenure's nonce.
fn lease_of(fields: &str, tenure: &Tenure) -> Option<u64> {
    let mut found = false;
    for line in fields.lines() {
        match line.split_once(" : ") {
            Some(("\"Value\"", value)) => {
                found = value.trim_matches('"') == tenure.nonce.to_string()
            }
            Some(("\"Lease\"", lease)) if found => {
                return lease.parse().ok().filter(|lease| *lease > 0);
            }
            _ => {}
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn one_member_conforms() {
    let etcd = Etcd::start().unwrap();
    let etcdctl = |arguments: &[&str]| etcd.etcdctl(arguments);
    conformance::run(&Server { url: etcd.url(), etcdctl: &etcdctl, cut: Mutex::default() })
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_conform() {
    let cluster = EtcdCluster::start(3).unwrap();
    let etcdctl = |arguments: &[&str]| cluster.etcdctl(arguments);
    conformance::run(&Server { url: cluster.url(), etcdctl: &etcdctl, cut: Mutex::default() })
        .await
        .unwrap();
}
