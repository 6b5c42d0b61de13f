//! The description that a server gives of itself.

use frazil_id::Layout;

/// What a server is, has and can do; the part that every protocol tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Its version.
    pub version: String,
    /// The namespace that it leases workers from.
    pub namespace: String,
    /// The layout of its IDs.
    pub layout: Layout,
    /// Its name.
    pub node: String,
    /// starting, ready, degraded, refusing, draining or stopped.
    pub state: String,
    /// The most IDs of one request.
    pub max_count: u32,
}

impl ServerInfo {
    /// Whether it issues IDs now.
    pub(crate) fn is_issuing(&self) -> bool {
        matches!(self.state.as_str(), "ready" | "degraded")
    }
}
