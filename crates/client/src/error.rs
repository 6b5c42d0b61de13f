//! The error of a call.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use frazil_id::{OutsideLayout, TimeError};
use frazil_wire::{ApiError, Reason};

/// Why a call failed, and what to do about it. However it fails, no ID was handed out.
///
/// What it rests on is its [`source`](std::error::Error::source), and not printed with it; `{:#}`
/// prints both.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A server answered that it does not.
    Refused {
        /// Which one.
        endpoint: Arc<str>,
        /// What it said.
        error: ApiError,
    },
    /// An endpoint could not be reached, or broke off.
    Unreachable {
        /// Which one.
        endpoint: Arc<str>,
        /// What happened.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An answer is not what was asked for: cut, of the wrong length, or not from a server of ours.
    /// None of its IDs are used.
    Broken {
        /// Whose answer.
        endpoint: Arc<str>,
        /// What is wrong with it.
        why: Arc<str>,
        /// What that was noticed by, if it was an error.
        cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
        /// The status of an HTTP answer.
        status: Option<u16>,
        /// After how long to ask again, if that was said.
        retry_after: Option<Duration>,
    },
    /// An answer is to another request: something on the way keeps answers and repeats them.
    /// None of its IDs are used.
    Replayed {
        /// Whose answer.
        endpoint: Arc<str>,
        /// Whether it said whose request it is to.
        has_nonce: bool,
    },
    /// The time for the call is over.
    Late {
        /// How long that was.
        within: Duration,
        /// Why the last attempt failed, if one did.
        last: Option<Arc<Self>>,
    },
    /// All endpoints failed lately, and none is due within the time for the call.
    Resting {
        /// When the first is due.
        retry_after: Duration,
        /// Why the last attempt failed.
        last: Option<Arc<Self>>,
    },
    /// The client was closed.
    Closed,
    /// A setting makes no sense, or what it names is of no use.
    Invalid {
        /// Which, and what to do.
        why: Arc<str>,
        /// What happened when it was used.
        cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
    /// Which layout the IDs have is not known yet.
    NoLayout,
    /// An ID of another layout.
    OutsideLayout(OutsideLayout),
    /// A time that the layout does not have.
    Time(TimeError),
}

impl Error {
    /// The reason of the catalogue, if a server gave one.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { error, .. } => Some(error.reason),
            Self::Late { last, .. } | Self::Resting { last, .. } => last.as_ref()?.reason(),
            _ => None,
        }
    }

    /// Whether the same call may succeed later. It is always safe: it burns IDs, it never repeats
    /// them.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused { error, .. } => error.reason.is_retryable(),
            // Servers of ours say more; these are what proxies say of servers that are away.
            Self::Broken { status: Some(status), .. } => {
                matches!(status, 200 | 429 | 502 | 503 | 504)
            }
            Self::Unreachable { .. }
            | Self::Broken { .. }
            | Self::Replayed { .. }
            | Self::Late { .. }
            | Self::Resting { .. } => true,
            Self::Closed
            | Self::Invalid { .. }
            | Self::NoLayout
            | Self::OutsideLayout(_)
            | Self::Time(_) => false,
        }
    }

    /// After how long the same call may succeed, if that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { error, .. } => error.retry_after,
            Self::Broken { retry_after, .. } => *retry_after,
            Self::Resting { retry_after, .. } => Some(*retry_after),
            Self::Late { last, .. } => last.as_ref()?.retry_after(),
            _ => None,
        }
    }

    pub(crate) fn invalid(why: impl fmt::Display) -> Self {
        Self::Invalid { why: why.to_string().into(), cause: None }
    }

    pub(crate) fn unreachable(
        endpoint: &Arc<str>,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Unreachable { endpoint: endpoint.clone(), cause: Arc::new(cause) }
    }

    /// What a time that is over makes of the reason why nothing came before.
    pub(crate) fn late(within: Duration, last: Option<Self>) -> Self {
        Self::Late { within, last: last.map(Arc::new) }
    }

    pub(crate) fn broken(endpoint: &Arc<str>, why: impl fmt::Display) -> Self {
        Self::Broken {
            endpoint: endpoint.clone(),
            why: why.to_string().into(),
            cause: None,
            status: None,
            retry_after: None,
        }
    }

    /// The same, with what it rests on.
    pub(crate) fn because(
        mut self,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        if let Self::Broken { cause, .. } | Self::Invalid { cause, .. } = &mut self {
            *cause = Some(Arc::from(error.into()));
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary(f)?;
        let mut cause = self.source().filter(|_| f.alternate());
        while let Some(deeper) = cause {
            write!(f, "; cause: {deeper}")?;
            cause = deeper.source();
        }
        Ok(())
    }
}

impl Error {
    /// What happened and what to do, without the cause.
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { endpoint, error } => {
                write!(f, "{endpoint}: {error}. {}", error.reason.help())
            }
            Self::Unreachable { endpoint, .. } => write!(
                f,
                "{endpoint} cannot be reached. Check the address and that a server runs there"
            ),
            Self::Broken { endpoint, why, .. } => write!(
                f,
                "{endpoint} does not answer as a server does: {why}. Ask again; if it stays so, \
                 look at what stands between"
            ),
            Self::Replayed { endpoint, has_nonce: true } => write!(
                f,
                "{endpoint} answered with what was meant for another request: a proxy on the way \
                 keeps answers. Tell it to keep none, or go past it"
            ),
            Self::Replayed { endpoint, has_nonce: false } => write!(
                f,
                "{endpoint} answered without the nonce of the request: a proxy on the way keeps \
                 answers or removes headers, or the server is older than this client"
            ),
            Self::Late { within, .. } => write!(
                f,
                "no answer within {within:?}. Ask again, or allow more time with deadline()"
            ),
            Self::Resting { retry_after, .. } => write!(
                f,
                "no endpoint is well; the first is asked again in {retry_after:?}. Wait for that, \
                 and check that the servers run"
            ),
            Self::Closed => f.write_str("the client was closed. Make another one"),
            Self::Invalid { why, .. } => f.write_str(why),
            Self::NoLayout => f.write_str(
                "the layout is not known yet: call info() first, or give it with layout()",
            ),
            Self::OutsideLayout(error) => fmt::Display::fmt(error, f),
            Self::Time(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable { cause, .. }
            | Self::Broken { cause: Some(cause), .. }
            | Self::Invalid { cause: Some(cause), .. } => Some(&**cause),
            Self::Late { last: Some(last), .. } | Self::Resting { last: Some(last), .. } => {
                Some(&**last)
            }
            // The others say all that there is.
            _ => None,
        }
    }
}

impl From<OutsideLayout> for Error {
    fn from(error: OutsideLayout) -> Self {
        Self::OutsideLayout(error)
    }
}

impl From<TimeError> for Error {
    fn from(error: TimeError) -> Self {
        Self::Time(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_kept_and_printed_once() {
        let endpoint: Arc<str> = "http://ids".into();
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let unreachable = Error::unreachable(&endpoint, refused);
        let late = Error::late(Duration::from_secs(2), Some(unreachable));
        let resting = Error::Resting {
            retry_after: Duration::from_secs(1),
            last: Some(Arc::new(late.clone())),
        };
        for (error, depth) in [(&late, 2), (&resting, 3)] {
            let chain: Vec<String> =
                std::iter::successors(error.source(), |cause| (*cause).source())
                    .map(ToString::to_string)
                    .collect();
            assert_eq!(chain.len(), depth, "{error:?}");
            assert_eq!(chain[depth - 1], "connection refused");
            assert!(!error.to_string().contains("refused"), "{error}");
            assert_eq!(format!("{error:#}").matches("connection refused").count(), 1);
        }
    }
}
