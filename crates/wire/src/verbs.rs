//! The answers to what an operator asks of a node: `POST /v1/node:drain`, `POST /v1/node:rotate`
//! and `POST /v1/workers/W:release`.

use serde::{Deserialize, Serialize};

/// A node that has let go of its workers, and is on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// The node's name.
    pub node: String,
    /// Its state, in a word.
    pub state: String,
    /// The workers that it held.
    pub released: Vec<u32>,
}

/// A node that has moved to other workers, and goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotated {
    /// The node's name.
    pub node: String,
    /// What it left and what it took.
    pub moved: Vec<Moved>,
}

/// A lane that holds another worker than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The worker that was released.
    pub from: u32,
    /// The worker that is held now.
    pub to: u32,
}
