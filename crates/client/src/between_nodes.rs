//! The client of nodes that forward to each other; nobody else should use it.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frazil_id::Layout;

pub use crate::budget::Budget;
use crate::builder::Identity;
use crate::endpoint::{Endpoint, Protocol};
use crate::error::Error;
pub use crate::health::{Health, Readiness};
use crate::host::Target;
use crate::http::Connections;
pub use crate::http::{IdsAnswer, IdsRequest};
use crate::secret::Keyring;
use crate::tls::Trust;

/// Other nodes, by their addresses. Each call is one attempt at one of them.
#[derive(Debug)]
pub struct Nodes {
    files: NodeFiles,
    key: Option<Arc<Keyring>>,
    state: Mutex<State>,
}

/// The files that say what is shown to other nodes and which of them are trusted.
#[derive(Clone, Debug, Default)]
pub struct NodeFiles {
    /// The key, as one line.
    pub key: Option<PathBuf>,
    /// The authorities of their certificates. With it nothing is said without TLS.
    pub ca: Option<PathBuf>,
    /// The node's own certificate and its private key, for those who ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

#[derive(Debug)]
struct State {
    trust: Option<Arc<Trust>>,
    known: HashMap<String, Arc<Connections>>,
}

impl Nodes {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn new(files: NodeFiles) -> Result<Self, Error> {
        let key = files.key.as_deref().map(Keyring::of_file).transpose()?.map(Arc::new);
        let state = State { trust: files.trust()?, known: HashMap::new() };
        Ok(Self { files, key, state: Mutex::new(state) })
    }

    /// Reads the key again, if there is one.
    ///
    /// # Errors
    /// What is wrong with it; the one before is kept.
    pub fn reload_key(&self) -> Result<bool, Error> {
        self.key.as_ref().map(|key| key.reload()).transpose().map(|key| key.is_some())
    }

    /// Reads the authorities and the node's own certificate again, if there are some. Connections that
    /// were opened with those before are not used again.
    ///
    /// # Errors
    /// What is wrong with them; those before are kept.
    pub fn reload_trust(&self) -> Result<bool, Error> {
        let Some(trust) = self.files.trust()? else { return Ok(false) };
        *self.state() = State { trust: Some(trust), known: HashMap::new() };
        Ok(true)
    }

    /// Asks the node at an address for IDs.
    ///
    /// # Errors
    /// If it refuses, does not answer, or does so with something else.
    pub async fn ids(
        &self,
        address: &str,
        request: IdsRequest<'_>,
        layout: &Layout,
    ) -> Result<IdsAnswer, Error> {
        self.connections(address)?.ids(request, Some(layout)).await
    }

    fn connections(&self, address: &str) -> Result<Arc<Connections>, Error> {
        let mut state = self.state();
        if let Some(known) = state.known.get(address) {
            return Ok(known.clone());
        }
        let (endpoint, trust) = (Endpoint::parse(address)?, state.trust.clone());
        check(&endpoint, trust.is_some())?;
        let target = Target { endpoint, trust, key: self.key.clone(), scope: String::new() };
        let new = Arc::new(Connections::new(Arc::new(target)));
        // Nodes come and go: what leads to others is not kept for ever.
        state.known.retain(|_, known| Arc::strong_count(known) > 1 || known.is_connected());
        state.known.insert(address.to_owned(), new.clone());
        Ok(new)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeFiles {
    fn trust(&self) -> Result<Option<Arc<Trust>>, Error> {
        let Some(ca) = &self.ca else { return Ok(None) };
        let identity = self.identity.clone().map(|(cert, key)| Identity { cert, key });
        Ok(Some(Arc::new(Trust::new(Some(ca), identity.as_ref())?)))
    }
}

/// Refuses an address that is not to be asked. The key is not shown in the clear to whoever the store
/// names.
fn check(endpoint: &Endpoint, has_trust: bool) -> Result<(), Error> {
    let why = match (endpoint.protocol, endpoint.is_secure, has_trust) {
        (Protocol::Grpc, ..) => "nodes ask each other over HTTP, and this is an address of gRPC",
        (_, false, true) => "the address is not https, and --peer-ca asks for TLS",
        (_, true, false) => "no authority is trusted: name one with --peer-ca",
        _ => return Ok(()),
    };
    Err(Error::unreachable(&endpoint.text, io::Error::other(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_must_not_be_asked_is_refused() {
        let endpoint = |text| Endpoint::parse(text).unwrap();
        let why = |text, has_trust| format!("{:#}", check(&endpoint(text), has_trust).unwrap_err());
        assert!(why("http://a", true).contains("not https"));
        assert!(why("https://a", false).contains("no authority"));
        assert!(check(&endpoint("http://a"), false).is_ok());
        assert!(check(&endpoint("https://a"), true).is_ok());
    }

    #[test]
    fn addresses_that_nobody_uses_are_forgotten() {
        let nodes = Nodes::new(NodeFiles::default()).unwrap();
        let used = nodes.connections("http://used").unwrap();
        for node in 0..100 {
            nodes.connections(&format!("http://node-{node}")).unwrap();
        }
        assert_eq!(nodes.state().known.len(), 2);
        assert!(Arc::ptr_eq(&used, &nodes.connections("http://used").unwrap()));
        assert!(nodes.connections("no address").is_err());
    }
}
