//! The answers to `GET /v1/elections` and `GET /v1/elections/{name}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Every election of the namespace, as a node sees the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Elections {
    /// By name.
    pub elections: Vec<Election>,
}

impl Elections {
    /// These.
    #[must_use]
    pub const fn new(elections: Vec<Election>) -> Self {
        Self { elections }
    }
}

/// One election, as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Election {
    /// Its name.
    pub name: String,
    /// Whether the node that answers leads it.
    pub is_leader: bool,
    /// How the node that answers is called in elections.
    pub instance_id: String,
    /// Who leads it, if somebody does.
    #[serde(default)]
    pub leader_info: Option<Leader>,
}

impl Election {
    /// An election without a leader.
    pub fn new(name: impl Into<String>) -> Self {
        let (name, instance_id) = (name.into(), String::new());
        Self { name, is_leader: false, instance_id, leader_info: None }
    }
}

/// Who leads an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Leader {
    /// How it is called in elections.
    pub instance: String,
    /// Its host.
    #[serde(default)]
    pub host: String,
    /// Its process.
    #[serde(default)]
    pub pid: u32,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Since when it leads.
    #[serde(default)]
    pub elected: String,
    /// When it last said so.
    #[serde(default)]
    pub renewed: String,
    /// The fencing token of its tenure, as a string.
    pub token: String,
    /// What it says of itself.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

impl Leader {
    /// A leader of which nothing but its fencing token is known.
    #[must_use]
    pub fn new(token: u64) -> Self {
        Self {
            instance: String::new(),
            host: String::new(),
            pid: 0,
            version: String::new(),
            elected: String::new(),
            renewed: String::new(),
            token: token.to_string(),
            metadata: BTreeMap::new(),
        }
    }
}
