//! The errors of a store. Expected outcomes (taken, lost, full) are values, not errors.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Which act failed, on which store, and what kind of failure it is.
///
/// The error of the client library or of the operating system is its
/// [`source`](std::error::Error::source), and not printed with it; `{:#}` prints both.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    act: &'static str,
    store: Box<str>,
    reason: Reason,
}

/// The kinds of failure; what to do about one follows from its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store cannot be reached or cannot work now. Nothing was written.
    Unavailable,
    /// The request was sent and no answer came: it may have been carried out, or still may be.
    Unknown,
    /// The store does not let us in: password, user, certificate, permission.
    Denied,
    /// The URL or an option makes no sense.
    InvalidConfig,
    /// What is stored cannot be read.
    Corrupt,
    /// What is stored was written by a newer version.
    NewerFormat,
    /// The store is set up so that it may lose or forget records.
    Unsafe,
}

impl ErrorKind {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Unavailable,
        Self::Unknown,
        Self::Denied,
        Self::InvalidConfig,
        Self::Corrupt,
        Self::NewerFormat,
        Self::Unsafe,
    ];

    /// Whether trying again later, without anybody doing anything, can help.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::Unknown)
    }

    /// The kind in a word, for logs and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Denied => "denied",
            Self::InvalidConfig => "invalid-config",
            Self::Corrupt => "corrupt",
            Self::NewerFormat => "newer-format",
            Self::Unsafe => "unsafe",
        }
    }
}

impl Error {
    /// An error of a kind, while doing `act` on `store` (its redacted text).
    pub fn new(
        kind: ErrorKind,
        act: &'static str,
        store: impl fmt::Display,
        message: impl fmt::Display,
    ) -> Self {
        Self::of(kind, act, store, message.to_string())
    }

    /// The same, with what it rests on.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.reason.cause = Some(Arc::from(source.into()));
        self
    }

    pub(crate) fn of(
        kind: ErrorKind,
        act: &'static str,
        store: impl fmt::Display,
        reason: impl Into<Reason>,
    ) -> Self {
        Self { kind, act, store: store.to_string().into(), reason: reason.into() }
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The act that failed.
    #[must_use]
    pub const fn act(&self) -> &'static str {
        self.act
    }

    /// The store that it failed on: its URL without secrets.
    #[must_use]
    pub fn store(&self) -> &str {
        &self.store
    }

    /// The same failure seen by a caller who cannot know whether it was carried out.
    #[must_use]
    pub fn into_unknown(self) -> Self {
        Self { kind: ErrorKind::Unknown, ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self.kind {
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Unknown => "no answer, it may have been carried out",
            ErrorKind::Denied => "denied",
            ErrorKind::InvalidConfig => "not a usable configuration",
            ErrorKind::Corrupt => "unreadable content",
            ErrorKind::NewerFormat => "written by a newer version",
            ErrorKind::Unsafe => "refused for safety",
        };
        write!(f, "{} on {}: {said}", self.act, self.store)?;
        if !self.reason.message.is_empty() {
            write!(f, ": {}", self.reason.message)?;
        }
        if f.alternate() { write_causes(f, self) } else { Ok(()) }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.reason.cause.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}

/// Whether they say the same: causes have nothing else to be compared by.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && format!("{self:#}") == format!("{other:#}")
    }
}

impl Eq for Error {}

/// Writes what an error rests on, for `{:#}`: every cause that the one before does not repeat.
///
/// # Errors
/// If it cannot be written.
pub fn write_causes(out: &mut dyn fmt::Write, error: &dyn StdError) -> fmt::Result {
    let mut said = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| (*cause).source()) {
        let text = cause.to_string();
        if !said.contains(&text) {
            write!(out, ": {text}")?;
            said = text;
        }
    }
    Ok(())
}

/// Why an act failed: what is to be said of it, and the error that it rests on.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    /// Empty, where the cause says it all.
    message: Box<str>,
    cause: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Reason {
    /// An error that says it all.
    pub(crate) fn of(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::new("", cause)
    }

    pub(crate) fn new(
        message: impl Into<Box<str>>,
        cause: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Self { message: message.into(), cause: Some(Arc::new(cause)) }
    }

    /// The same, with something said in front of it.
    pub(crate) fn after(mut self, said: impl fmt::Display) -> Self {
        self.message = format!("{said} {}", self.message).trim_end().into();
        self
    }
}

/// All of it.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let Some(cause) = &self.cause else { return Ok(()) };
        if !self.message.is_empty() {
            f.write_str(": ")?;
        }
        write!(f, "{cause}")?;
        write_causes(f, &**cause)
    }
}

impl From<String> for Reason {
    fn from(message: String) -> Self {
        Self { message: message.into(), cause: None }
    }
}

impl From<&str> for Reason {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// Why an act has no result, where it is not known yet which act it is and on which store.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Nothing was written.
    Definite(ErrorKind, Reason),
    /// It may have been carried out, or still may be.
    Silent(Reason),
}

impl Failure {
    /// The error of an act on a store (its redacted text).
    pub(crate) fn into_error(self, act: &'static str, store: impl fmt::Display) -> Error {
        match self {
            Self::Definite(kind, why) => Error::of(kind, act, store, why),
            Self::Silent(why) => Error::of(ErrorKind::Unknown, act, store, why),
        }
    }
}

impl From<(ErrorKind, Reason)> for Failure {
    fn from((kind, why): (ErrorKind, Reason)) -> Self {
        Self::Definite(kind, why)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_cause_is_kept_and_printed_once() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let new = |kind| Error::new(kind, "connect", "redis://ids", "10.0.0.1:6379");
        let error = new(ErrorKind::Unavailable).with_source(refused());
        assert!(error.source().unwrap().is::<io::Error>());
        assert_eq!(error.to_string(), "connect on redis://ids: unavailable: 10.0.0.1:6379");
        assert_eq!(format!("{error:#}"), format!("{error}: {}", refused()));
        assert_eq!(error, new(ErrorKind::Unavailable).with_source(refused()));
        assert_ne!(error, new(ErrorKind::Unavailable));
        // What a cause already says of its own cause is not said again.
        let wrapped = io::Error::other(error.clone().with_source(io::Error::other(refused())));
        assert_eq!(format!("{:#}", error.with_source(wrapped)).matches("refused").count(), 1);
    }
}
