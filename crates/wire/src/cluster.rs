//! The answer to `GET /v1/cluster`.

use serde::{Deserialize, Serialize};

use crate::scopes::ScopeInfo;

/// The nodes of a namespace, as one of them sees the store. Nodes of other versions may leave out
/// what is not needed to find the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cluster {
    /// The namespace.
    pub namespace: String,
    /// When the store was looked at.
    #[serde(default)]
    pub observed: String,
    /// Who holds workers now, by name.
    pub nodes: Vec<ClusterNode>,
    /// All workers of the namespace, by what they are good for.
    #[serde(default)]
    pub workers: WorkerCounts,
    /// The scopes that this node knows.
    #[serde(default)]
    pub scopes: Vec<ScopeInfo>,
}

impl Cluster {
    /// The nodes of a namespace, and nothing else about it.
    pub fn new(namespace: impl Into<String>, nodes: Vec<ClusterNode>) -> Self {
        Self {
            namespace: namespace.into(),
            observed: String::new(),
            nodes,
            workers: WorkerCounts::default(),
            scopes: Vec::new(),
        }
    }
}

/// A node that holds workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// Where it is reached, if it says so.
    #[serde(default)]
    pub advertise: Option<String>,
    /// Its region, if it has one.
    #[serde(default)]
    pub region: Option<String>,
    /// Its zone, if it has one. Clients prefer nodes of their own zone.
    #[serde(default)]
    pub zone: Option<String>,
    /// Its host, if it says so.
    #[serde(default)]
    pub host: Option<String>,
    /// Its version, if it says so.
    #[serde(default)]
    pub version: Option<String>,
    /// Its workers.
    #[serde(default)]
    pub workers: Vec<u32>,
}

impl ClusterNode {
    /// A node of which only the name is known.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// Workers by what they are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_other_versions_are_found_by_what_they_say() {
        let said = r#"{"namespace":"n","nodes":[{"name":"a","advertise":"http://a:7780"},
            {"name":"b","zone":"east","workers":[7],"colour":"blue"}],"workers":{"held":2}}"#;
        let cluster: Cluster = serde_json::from_str(said).unwrap();
        let [a, b] = cluster.nodes.as_slice() else { panic!("{cluster:?}") };
        assert_eq!((a.advertise.as_deref(), a.zone.as_deref()), (Some("http://a:7780"), None));
        assert_eq!((b.advertise.as_deref(), b.zone.as_deref()), (None, Some("east")));
        assert_eq!((cluster.workers.held, cluster.workers.capacity), (2, 0));
        // What is no cluster is not taken for an empty one.
        assert!(serde_json::from_str::<Cluster>(r#"{"namespace":"n"}"#).is_err());
        assert!(serde_json::from_str::<Cluster>(r#"{"nodes":[]}"#).is_err());
    }
}
