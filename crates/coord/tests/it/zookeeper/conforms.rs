//! The contract, on one server and on three. Presence lapses as it does in life: the holder is cut
//! off until its session has expired.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use frazil_conformance::{self as conformance, Subject, Violation};
use frazil_coord::internal::Tenure;
use frazil_coord::internal::stores::zookeeper::ZooKeeperStore;
use frazil_coord::{Error, Namespace, Slot, Store};
use frazil_rig::{Proxy, ZooKeeperEnsemble};
use frazil_zookeeper as zk;

use crate::zookeeper::place::{Place, control, server};

/// Long enough for a busy machine, short enough to wait for.
const SESSION: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Servers {
    addresses: Vec<String>,
    control: zk::Client,
    clients: Mutex<Vec<Client>>,
}

#[derive(Debug, Clone)]
struct Client {
    store: Arc<dyn Store>,
    place: Place,
    proxies: Arc<Vec<Proxy>>,
}

impl Servers {
    async fn new(addresses: Vec<String>) -> Self {
        let control = control(&addresses.join(",")).await;
        Self { addresses, control, clients: Mutex::default() }
    }

    fn place(&self, namespace: &Namespace) -> Place {
        Place { namespace: namespace.clone(), control: self.control.clone() }
    }

    async fn open_with(&self, namespace: &Namespace, options: &str) -> Result<Client, Error> {
        let start = |address| Proxy::start(address).unwrap();
        let proxies: Vec<Proxy> = self.addresses.iter().map(start).collect();
        let addresses: Vec<_> = proxies.iter().map(Proxy::address).collect();
        let url =
            format!("zk://{}/tests?session=2s{options}", addresses.join(",")).parse().unwrap();
        let store = ZooKeeperStore::connect(&url, namespace).await?;
        let store: Arc<dyn Store> = Arc::new(store);
        let (place, proxies) = (self.place(namespace), Arc::new(proxies));
        let client = Client { store, place, proxies };
        self.clients.lock().unwrap().push(client.clone());
        Ok(client)
    }
}

#[async_trait]
impl Subject for Servers {
    async fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, Error> {
        self.open_with(namespace, "").await.map(|client| client.store)
    }

    async fn unreachable(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<Arc<dyn Store>>, Violation> {
        let client = self.open_with(namespace, "&timeout=500ms").await?;
        client.proxies.iter().for_each(Proxy::cut);
        Ok(Some(client.store))
    }

    async fn lapse(&self, holder: &Arc<dyn Store>, tenure: &Tenure) -> Result<(), Violation> {
        let clients = self.clients.lock().unwrap().clone();
        let holds = |client: &&Client| Arc::ptr_eq(&client.store, holder);
        let client = clients.iter().find(holds).ok_or_else(|| Violation::new("who?"))?;
        client.proxies.iter().for_each(Proxy::cut);
        client.place.wait_until_free(&tenure.slot).await;
        client.proxies.iter().for_each(Proxy::heal);
        Ok(())
    }

    async fn forget(&self, namespace: &Namespace, slot: &Slot) -> Result<(), Violation> {
        let place = self.place(namespace);
        let record = place.path(&format!("{}/{}", slot.group().letter(), slot.name()));
        for path in [record, place.own(slot)] {
            match self.control.delete(&path, None).await {
                Ok(()) | Err(zk::Error::NoNode) => {}
                Err(error) => return Err(Violation::new(error)),
            }
        }
        Ok(())
    }

    async fn wipe(&self, namespace: &Namespace) -> Result<(), Violation> {
        let place = self.place(namespace);
        for parent in ["w", "e", "s", "k", "own", "born"] {
            let parent = place.path(parent);
            for child in self.control.get_children(&parent).await.map_err(Violation::new)? {
                let child = format!("{parent}/{child}");
                self.control.delete(&child, None).await.map_err(Violation::new)?;
            }
            self.control.delete(&parent, None).await.map_err(Violation::new)?;
        }
        self.control.delete(&place.path("meta"), None).await.map_err(Violation::new)
    }

    fn ttl(&self) -> Duration {
        SESSION
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_conforms() {
    let subject = Servers::new(vec![server().address()]).await;
    conformance::run(&subject).await.unwrap_or_else(|violation| panic!("{violation}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ensemble_of_three_conforms() {
    let ensemble = ZooKeeperEnsemble::start(3).unwrap();
    let subject = Servers::new(ensemble.nodes().iter().map(|node| node.address()).collect()).await;
    conformance::run(&subject).await.unwrap_or_else(|violation| panic!("{violation}"));
}
