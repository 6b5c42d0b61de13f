//! The reason why nothing was measured, or why what was measured is not well.

use std::fmt;

/// What went wrong, with a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for cannot be measured: something was written wrongly.
    Usage(String),
    /// The server, or what this process needs, is not there.
    Unavailable(String),
    /// The server refuses for safety.
    Refused(String),
    /// The IDs are not what they must be.
    Wrong(String),
    /// Somebody ended it before there was anything to report.
    Interrupted,
}

impl Error {
    pub(crate) fn usage(why: impl fmt::Display) -> Self {
        Self::Usage(why.to_string())
    }

    pub(crate) fn unavailable(why: impl fmt::Display) -> Self {
        Self::Unavailable(why.to_string())
    }

    pub(crate) fn no_threads(error: &std::io::Error) -> Self {
        Self::Unavailable(format!("not enough threads: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(why) | Self::Unavailable(why) | Self::Refused(why) | Self::Wrong(why) => {
                f.write_str(why)
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
