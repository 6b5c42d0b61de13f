//! The answers to `GET /v1/elections` and `GET /v1/elections/{name}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Every election of the namespace, as a node sees the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elections {
    /// By name.
    pub elections: Vec<Election>,
}

/// One election, as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Who leads an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
