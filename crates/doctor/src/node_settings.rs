//! The settings of a node that checks depend on.

use frazil::{Node, StartError, fixed_timing, fixed_worker};
use frazil_coord::{Namespace, StoreUrl, Timing};
use frazil_id::Layout;

/// A node as it would be started.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Its store.
    pub url: StoreUrl,
    /// Its namespace there.
    pub namespace: Namespace,
    /// The layout of its IDs.
    pub layout: Layout,
    /// The durations of its leases, as asked for.
    pub timing: Timing,
    /// The range of workers, if one was asked for.
    pub workers: Option<(u32, u32)>,
    /// The flags that lead another `frazil` command to the same namespace, with a space before each;
    /// none if they need not be said.
    pub flags: String,
}

impl NodeSettings {
    /// The first relation between the settings that does not hold.
    #[must_use]
    pub fn clash(&self) -> Option<StartError> {
        let mut node = Node::builder()
            .store_url(self.url.clone())
            .namespace(self.namespace.clone())
            .layout(self.layout)
            .timing(self.timing);
        if let Some((first, last)) = self.workers {
            node = node.workers(first..=last);
        }
        node.check().err()
    }

    /// The durations that leases will have.
    pub(crate) fn effective_timing(&self) -> Timing {
        match fixed_worker(&self.url) {
            Some(_) => fixed_timing(&self.layout),
            None => self.timing,
        }
    }

    /// A command on the same namespace.
    pub(crate) fn command(&self, command: &str) -> String {
        format!("frazil {command}{}", self.flags)
    }
}
