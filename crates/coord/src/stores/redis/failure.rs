//! The meaning of the client library's errors.

use std::fmt;

use redis::{ErrorKind as Kind, RedisError, ServerErrorKind as Server};

use super::settings::Settings;
use crate::error::{Error, ErrorKind};

const TO_PLAIN: &str = "; if the server does not speak TLS, use the scheme without it";

/// What an error answers to: was it carried out, and what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureMeaning {
    /// Refused, since the server is not, or no longer, the right one. Nothing was written.
    Elsewhere,
    /// The server does not have the script. Nothing was written.
    NoScript,
    /// The server cannot work now. Nothing was written.
    Busy,
    /// The server does not let us. Nothing was written.
    Denied,
    /// The connection broke; whether it was carried out is unknown.
    Broken,
    /// The server, or what is stored, is not what was expected. Scripts check before they write,
    /// so nothing was written.
    Strange,
}

impl FailureMeaning {
    pub(super) fn of(error: &RedisError) -> Self {
        let text = error.to_string();
        match error.kind() {
            Kind::Server(Server::ReadOnly | Server::Moved) => Self::Elsewhere,
            Kind::Server(Server::NoScript) => Self::NoScript,
            Kind::Server(Server::NoPerm) | Kind::AuthenticationFailed => Self::Denied,
            // A slot on its way from one master to another is nobody's for a moment.
            Kind::Server(
                Server::BusyLoading
                | Server::ClusterDown
                | Server::MasterDown
                | Server::TryAgain
                | Server::Ask,
            ) => Self::Busy,
            _ if error.is_io_error() => Self::Broken,
            _ => Self::of_text(&format!("{} {text}", error.code().unwrap_or_default())),
        }
    }

    /// By the words of the server: inside scripts the code in front may be another.
    fn of_text(text: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(&["READONLY"]) {
            Self::Elsewhere
        } else if has(&[
            "NOAUTH",
            "WRONGPASS",
            "NOPERM",
            "user executing the script",
            "without any password",
        ]) {
            Self::Denied
        } else if has(&["OOM ", "MISCONF", "NOREPLICAS", "BUSY ", "LOADING", "CLUSTERDOWN"]) {
            Self::Busy
        } else {
            Self::Strange
        }
    }

    const fn kind(self) -> ErrorKind {
        match self {
            Self::Denied => ErrorKind::Denied,
            Self::Broken => ErrorKind::Unknown,
            Self::Strange => ErrorKind::Corrupt,
            Self::Elsewhere | Self::NoScript | Self::Busy => ErrorKind::Unavailable,
        }
    }
}

impl Settings {
    /// The error of a request that was sent.
    pub(super) fn failed(&self, act: &'static str, error: &RedisError) -> Error {
        Error::new(FailureMeaning::of(error).kind(), act, &self.url, "")
            .with_source(self.redacted(error))
    }

    /// The error of not being let in.
    pub(super) fn refused(&self, kind: ErrorKind, why: impl fmt::Display) -> Error {
        Error::new(kind, "connect", &self.url, why)
    }

    /// The error of getting in: nothing was asked yet.
    pub(super) fn shut_out(&self, place: &str, error: &RedisError) -> Error {
        let text = error.to_string();
        let (kind, hint) = match error.kind() {
            Kind::InvalidClientConfig => (ErrorKind::InvalidConfig, ""),
            Kind::AuthenticationFailed => (ErrorKind::Denied, ""),
            _ if error.is_io_error() => self.shut_out_by(&text),
            _ => match FailureMeaning::of(error) {
                FailureMeaning::Denied => (ErrorKind::Denied, ""),
                _ => (ErrorKind::Unavailable, ""),
            },
        };
        self.refused(kind, format_args!("{place}{hint}")).with_source(self.redacted(error))
    }

    /// The library hands rustls's errors on inside an I/O error, where only their words are left.
    fn shut_out_by(&self, text: &str) -> (ErrorKind, &'static str) {
        const TO_TLS: &str = "; if the server speaks TLS, use the scheme with it, such as rediss:";
        if text.contains("invalid peer certificate") || text.contains("certificate not valid") {
            (ErrorKind::Denied, "; is ca the right one?")
        } else if text.contains("received fatal alert") {
            (ErrorKind::Denied, "; does the server want a certificate (cert and key)?")
        } else if text.contains("corrupt message") || self.url.tls && is_cut(text) {
            (ErrorKind::Unavailable, TO_PLAIN)
        } else if is_cut(text) {
            (ErrorKind::Unavailable, TO_TLS)
        } else {
            (ErrorKind::Unavailable, "")
        }
    }

    /// The error of getting in when no answer came.
    pub(super) fn silent(&self, place: &str) -> Error {
        let waited = self.timeout;
        let hint = if self.url.tls { TO_PLAIN } else { "" };
        let why = format_args!("{place} did not answer within {waited:?}{hint}");
        self.refused(ErrorKind::Unavailable, why)
    }
}

/// Whether the other side hung up instead of answering.
fn is_cut(text: &str) -> bool {
    ["reset by peer", "broken pipe", "Broken pipe", "eof", "end of file", "closed"]
        .iter()
        .any(|word| text.contains(word))
}
