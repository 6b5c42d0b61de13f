//! The answers to what an operator asks of a node: `POST /v1/node:drain`, `POST /v1/node:rotate`
//! and `POST /v1/workers/W:release`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node that has let go of its workers, and is on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Drained {
    /// The node's name.
    pub node: String,
    /// Its state, in a word.
    pub state: String,
    /// The workers that it held.
    pub released: Vec<u32>,
}

impl Drained {
    /// A node in a state, which has released these workers.
    pub fn new(node: impl Into<String>, state: impl fmt::Display, released: Vec<u32>) -> Self {
        Self { node: node.into(), state: state.to_string(), released }
    }
}

/// A node that has moved to other workers, and goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rotated {
    /// The node's name.
    pub node: String,
    /// What it left and what it took.
    pub moved: Vec<Moved>,
}

impl Rotated {
    /// The moves of a node.
    pub fn new(node: impl Into<String>, moved: Vec<Moved>) -> Self {
        Self { node: node.into(), moved }
    }
}

/// A lane that holds another worker than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Moved {
    /// The worker that was released.
    pub from: u32,
    /// The worker that is held now.
    pub to: u32,
}

/// From one worker to another.
impl From<[u32; 2]> for Moved {
    fn from([from, to]: [u32; 2]) -> Self {
        Self { from, to }
    }
}
