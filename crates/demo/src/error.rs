//! The errors of a demonstration.

use std::{fmt, io};

use frazil_coord::StoreUrl;
use frazil_coord::internal::write_causes;
use frazil_election::processor::ProcessorError;

/// Why there is no demonstration, or none any more.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Each node would have such a store for itself.
    NotShared(Box<StoreUrl>),
    /// The store cannot be opened.
    Store(frazil_coord::Error),
    /// The names or the jobs cannot be run.
    Processor(ProcessorError),
    /// The terminal cannot be drawn on.
    Terminal(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotShared(url) => {
                write!(f, "{url} is not shared by several nodes: use another store")
            }
            Self::Store(error) => error.fmt(f),
            Self::Processor(error) => error.fmt(f),
            Self::Terminal(_) => {
                f.write_str("the terminal cannot be drawn on")?;
                if f.alternate() { write_causes(f, self) } else { Ok(()) }
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotShared(_) => None,
            Self::Store(error) => error.source(),
            Self::Processor(error) => error.source(),
            Self::Terminal(error) => Some(error),
        }
    }
}

impl From<frazil_coord::Error> for Error {
    fn from(error: frazil_coord::Error) -> Self {
        Self::Store(error)
    }
}

impl From<ProcessorError> for Error {
    fn from(error: ProcessorError) -> Self {
        Self::Processor(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}
