//! The plan of a demonstration.

use std::time::Duration;

use frazil_coord::{Namespace, Scheme, StoreUrl};
use frazil_election::{Settings, store_url};

use crate::error::Error;

/// What to demonstrate, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The store, which all nodes share.
    pub url: StoreUrl,
    /// The namespace of the elections behind the jobs.
    pub namespace: Namespace,
    /// The application: what the jobs are called in the store.
    pub app: String,
    /// How many nodes.
    pub nodes: usize,
    /// How many jobs.
    pub jobs: usize,
    /// How long everything rests before each restart, for those who watch.
    pub rest: Duration,
}

impl Plan {
    /// The same, with a store that suits elections.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        if matches!(self.url.scheme, Scheme::Memory | Scheme::Static) {
            return Err(Error::NotShared(Box::new(self.url)));
        }
        Ok(Self { url: store_url(&self.url, Settings::default().ttl), ..self })
    }

    /// What is shown above everything.
    pub(crate) fn title(&self) -> String {
        let (jobs, nodes) = (self.jobs, self.nodes);
        // The name of a temporary directory says nothing.
        let store = self.url.to_string();
        let store = store.split(['/', '?']).next().unwrap_or_default().trim_end_matches(':');
        format!("frazil jobs demo: {jobs} jobs on {nodes} nodes, store {store}")
    }
}
