//! Elections in the namespace of a node.

use frazil_coord::{Error, ErrorKind, FirstUse, Scheme};
use frazil_election::{Elections, Settings};

use crate::node::Node;

impl Node {
    /// Elections in the node's namespace, over a client of its own of the node's store: a leader is
    /// replaced after the time to live of its settings, and not after that of the node's leases.
    /// Clones of what is returned share that client. A store that the node was given open is shared
    /// with it.
    ///
    /// # Errors
    /// If the store cannot be reached, or is the node's alone.
    pub async fn elections(&self, settings: &Settings) -> Result<Elections, Error> {
        let shared = || Elections::new(self.shared.store.clone());
        let Some(url) = self.store_url() else { return Ok(shared()) };
        match url.scheme {
            // It is gone with the process, and has no times of its own.
            Scheme::Memory => Ok(shared().first_use(FirstUse::of(url.scheme))),
            Scheme::Static => {
                let why = "static:N is for one process alone, and has no elections";
                Err(Error::new(ErrorKind::InvalidConfig, "hold elections", url, why))
            }
            _ => Elections::open(url, &self.shared.namespace, settings).await,
        }
    }
}
