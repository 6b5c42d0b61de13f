//! The errors of a store. Expected outcomes (taken, lost, full) are values, not errors.

use std::fmt;

/// Which act failed, on which store, and what kind of failure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    act: &'static str,
    store: String,
    message: String,
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
        Self { kind, act, store: store.to_string(), message: message.to_string() }
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
        write!(f, "{} on {}: {said}: {}", self.act, self.store, self.message)
    }
}

impl std::error::Error for Error {}

/// Why an act has no result, where it is not known yet which act it is and on which store.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Nothing was written.
    Definite(ErrorKind, String),
    /// It may have been carried out, or still may be.
    Silent(String),
}

impl Failure {
    /// The error of an act on a store (its redacted text).
    pub(crate) fn into_error(self, act: &'static str, store: impl fmt::Display) -> Error {
        match self {
            Self::Definite(kind, why) => Error::new(kind, act, store, why),
            Self::Silent(why) => Error::new(ErrorKind::Unknown, act, store, why),
        }
    }
}

impl From<(ErrorKind, String)> for Failure {
    fn from((kind, why): (ErrorKind, String)) -> Self {
        Self::Definite(kind, why)
    }
}
