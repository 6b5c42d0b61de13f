//! Moving to other workers: what happened, and why not.

use std::fmt;

use frazil_coord::{Refusal, Waiting};

/// A lane that has moved from one worker to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// The worker that it held, which is released.
    pub from: u32,
    /// The worker that it holds now.
    pub to: u32,
}

/// Why no lane has moved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotRotated {
    /// This node does not hold the worker that it should leave.
    NotHeld,
    /// No other worker could be had in time.
    NoOther(Waiting),
    /// The node was shut down.
    Ended,
    /// This process was forked from the one that the node belongs to.
    Forked,
    /// The store does not let the node have another worker.
    Refused(Refusal),
}

impl fmt::Display for NotRotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHeld => f.write_str(
                "this node does not hold that worker: see who does with `frazil workers ls`",
            ),
            Self::NoOther(waiting) => write!(
                f,
                "no other worker in time, so nothing has changed; waited for {waiting}. Try again \
                 later, or free workers first"
            ),
            Self::Ended => f.write_str("the node was shut down: it holds no worker any more"),
            Self::Forked => f.write_str(crate::node::FORKED),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for NotRotated {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its text is that of what it holds.
            Self::Refused(refusal) => refusal.source(),
            Self::NotHeld | Self::NoOther(_) | Self::Ended | Self::Forked => None,
        }
    }
}
