//! The reason why a server ended by itself.

use std::fmt;
use std::time::Duration;

use frazil::StartError;
use frazil::coord::keeper::Refusal;

/// Why a server ended by itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The node cannot start.
    Start(StartError),
    /// The node refused for too long.
    Refused {
        /// Why it refused.
        why: String,
        /// For how long it might.
        limit: Duration,
    },
}

impl RunError {
    /// The store's refusal, if that is what it is.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Start(StartError::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => error.fmt(f),
            Self::Refused { why, limit } => {
                write!(f, "the node refused for more than {limit:?} and shuts down: {why}")
            }
        }
    }
}

impl std::error::Error for RunError {}
