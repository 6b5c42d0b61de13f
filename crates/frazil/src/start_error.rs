//! The reason why a node did not start.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use frazil_coord::internal::rules::REQUEST_MAX;
use frazil_coord::internal::write_causes;
use frazil_coord::{Error, TimingError, UrlError};
use frazil_coord::{Refusal, Waiting};

use crate::builder::LANES_MAX;

/// Why a node did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// No store was named, and there is no state directory for the default one.
    NoStateDirectory,
    /// The store's URL makes no sense.
    Url(UrlError),
    /// The store was given open, and is to be opened again by a URL.
    NoUrl,
    /// Less than one lane or too many.
    Lanes(usize),
    /// The range of workers is empty or does not fit the layout.
    Workers {
        /// The range.
        workers: RangeInclusive<u32>,
        /// The last worker of the layout.
        last: u32,
    },
    /// The durations do not go together.
    Timing(TimingError),
    /// A request may take so long that the lease lapses behind it.
    Timeout {
        /// As the URL has it.
        timeout: Duration,
        /// A quarter of the TTL, or [`REQUEST_MAX`] if that is
        /// less.
        most: Duration,
    },
    /// The options do not fit the layout.
    Options(frazil_id::StartError),
    /// The thread of a blocking node cannot be started.
    Thread(std::io::Error),
    /// The store cannot be used.
    Store(Error),
    /// The lease was refused.
    Refused(Refusal),
    /// No worker within the time that the start may take, or within any.
    NoWorker(Waiting),
}

impl From<Error> for StartError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStateDirectory => f.write_str(
                "no store is named, and there is no state directory for the default one: set \
                 FRAZIL_STATE_DIR or HOME",
            ),
            Self::Url(error) => error.fmt(f),
            Self::NoUrl => f.write_str(
                "the store was given open, and cannot be opened again: give its URL instead",
            ),
            Self::Lanes(lanes) => write!(f, "{lanes} lanes: use 1 to {LANES_MAX}"),
            Self::Workers { workers, last } => write!(
                f,
                "workers {} to {} do not fit: the layout has 0 to {last}",
                workers.start(),
                workers.end()
            ),
            Self::Timing(error) => error.fmt(f),
            Self::Timeout { timeout, most } => {
                let limit = "the lesser of a quarter of the TTL and";
                write!(
                    f,
                    "a time-out of {timeout:?} is more than {most:?}, {limit} {REQUEST_MAX:?}"
                )
            }
            Self::Options(error) => error.fmt(f),
            Self::Thread(_) => {
                f.write_str("no thread for the leases: see how many there may be")?;
                if f.alternate() { write_causes(f, self) } else { Ok(()) }
            }
            Self::Store(error) => error.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::NoWorker(waiting) => write!(f, "no worker in time, waiting for {waiting}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            // Their text is that of what they hold, so what comes next is what that rests on.
            Self::Url(error) => error.source(),
            Self::Timing(error) => error.source(),
            Self::Options(error) => error.source(),
            Self::Store(error) => error.source(),
            Self::Refused(refusal) => refusal.source(),
            Self::NoStateDirectory
            | Self::NoUrl
            | Self::Lanes(_)
            | Self::Workers { .. }
            | Self::Timeout { .. }
            | Self::NoWorker(_) => None,
        }
    }
}
