//! The answer to `POST /v1/ids`.

use frazil_id::Id;
use serde::{Deserialize, Serialize};

/// IDs with where they come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IdsReply {
    /// The IDs in ascending order, as strings: they exceed what a JSON number holds everywhere.
    pub ids: Vec<Id>,
    /// How many.
    pub count: u64,
    /// Where they come from.
    pub metadata: Metadata,
}

impl IdsReply {
    /// IDs, with where they come from.
    #[must_use]
    pub const fn new(ids: Vec<Id>, metadata: Metadata) -> Self {
        let count = ids.len() as u64;
        Self { ids, count, metadata }
    }
}

/// Where the IDs of an answer come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metadata {
    /// The node.
    pub node: String,
    /// The worker in all of them.
    pub worker: u32,
    /// The fencing token of the worker's lease, as a string.
    pub token: String,
    /// The layout's text.
    #[serde(default)]
    pub layout: String,
    /// The node's region, if it has one.
    #[serde(default)]
    pub region: Option<String>,
    /// The scope, if one was named.
    #[serde(default)]
    pub scope: Option<String>,
    /// When the first was issued, by its own bits.
    #[serde(default)]
    pub first_time: String,
    /// When the last was issued, by its own bits.
    #[serde(default)]
    pub last_time: String,
}

impl Metadata {
    /// What was issued by a worker of a node, under a token.
    pub fn new(node: impl Into<String>, worker: u32, token: u64) -> Self {
        Self {
            node: node.into(),
            worker,
            token: token.to_string(),
            layout: String::new(),
            region: None,
            scope: None,
            first_time: String::new(),
            last_time: String::new(),
        }
    }
}
