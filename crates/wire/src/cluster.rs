//! The answer to `GET /v1/cluster`.

use serde::{Deserialize, Serialize};

use crate::scopes::ScopeInfo;

/// The nodes of a namespace, as one of them sees the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The namespace.
    pub namespace: String,
    /// When the store was looked at.
    pub observed: String,
    /// Who holds workers now, by name.
    pub nodes: Vec<ClusterNode>,
    /// All workers of the namespace, by what they are good for.
    pub workers: WorkerCounts,
    /// The scopes that this node knows.
    pub scopes: Vec<ScopeInfo>,
}

/// A node that holds workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// Where it is reached, if it says so.
    pub advertise: Option<String>,
    /// Its region, if it has one.
    pub region: Option<String>,
    /// Its host, if it says so.
    pub host: Option<String>,
    /// Its version, if it says so.
    pub version: Option<String>,
    /// Its workers.
    pub workers: Vec<u32>,
}

/// Workers by what they are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerCounts {
    /// All there are.
    pub capacity: u32,
    /// Somebody has them.
    pub held: u32,
    /// They can be leased.
    pub free: u32,
    /// Their last holder may still use them.
    pub blocked: u32,
    /// The namespace's quarantine covers them.
    pub quarantined: u32,
    /// Their horizon is further ahead than any correct holder can have put it.
    pub poisoned: u32,
    /// Their record is gone.
    pub lost: u32,
}
