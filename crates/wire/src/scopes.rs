//! Scopes in the answers to `GET /v1/info` and `GET /v1/cluster`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a scope promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ScopeKind {
    /// Nothing: it is a label of metrics.
    #[default]
    Plain,
    /// Its IDs strictly increase across the cluster: one node at a time issues them.
    Strict,
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}

/// A scope that a node knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScopeInfo {
    /// Its name.
    pub name: String,
    /// What it promises.
    pub kind: ScopeKind,
    /// Who issues its IDs, if it is strict and somebody does.
    #[serde(default)]
    pub leader: Option<ScopeLeader>,
}

impl ScopeInfo {
    /// A scope without a leader.
    pub fn new(name: impl Into<String>, kind: ScopeKind) -> Self {
        Self { name: name.into(), kind, leader: None }
    }
}

/// The node that issues the IDs of a strict scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScopeLeader {
    /// Its name.
    pub node: String,
    /// Where other nodes reach it, if it says so.
    #[serde(default)]
    pub advertise: Option<String>,
    /// The fencing token of its tenure, as a string.
    pub token: String,
}

impl ScopeLeader {
    /// The node that leads a scope under a token.
    pub fn new(node: impl Into<String>, token: u64) -> Self {
        Self { node: node.into(), advertise: None, token: token.to_string() }
    }
}

impl ScopeKind {
    /// The kind in a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Strict => "strict",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ScopeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
