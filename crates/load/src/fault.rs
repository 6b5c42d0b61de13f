//! The reason why a request brought no IDs.

use std::fmt;
use std::io;

use frazil_wire::{Reason, printable};
use rustix::io::Errno;

use crate::descriptors;
use crate::error::Error;

/// What went wrong with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server said no, with a reason of the catalogue.
    Refused { reason: String, detail: String },
    /// No answer in time.
    TimedOut,
    /// There was no connection to be had.
    Unreachable(String),
    /// This process may not open as many files and connections as it would have to.
    NoDescriptors(String),
    /// The server and this command do not trust each other.
    Untrusted(String),
    /// What answers does not speak TLS.
    NotTls(String),
    /// The connection ended before the answer.
    Lost(String),
    /// What came is no answer of a frazil server.
    Stranger(String),
    /// Not as many IDs as were asked for.
    WrongCount { asked: u64, got: u64 },
}

impl Fault {
    pub(crate) fn stranger(why: impl fmt::Display) -> Self {
        Self::Stranger(printable(&why.to_string()))
    }

    /// Why there was no connection. That this process has no room for it is not the server's fault.
    #[expect(clippy::needless_pass_by_value, reason = "it is what map_err has")]
    pub(crate) fn unreachable(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => Self::NoDescriptors(error.to_string()),
            _ => Self::Unreachable(error.to_string()),
        }
    }

    /// Whether another try at once is of no use.
    pub(crate) const fn is_lasting(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::NoDescriptors(_) | Self::Untrusted(_) | Self::NotTls(_)
        )
    }

    /// A refusal, by the word that the server gave for it.
    pub(crate) fn refused(reason: &str, detail: &str) -> Self {
        Self::Refused { reason: printable(reason), detail: printable(detail) }
    }

    /// What it is counted as.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Refused { reason, .. } => reason,
            Self::TimedOut => "timed out",
            Self::Unreachable(_) => "cannot connect",
            Self::NoDescriptors(_) => "too many open files",
            Self::Untrusted(_) => "not trusted",
            Self::NotTls(_) => "no TLS",
            Self::Lost(_) => "connection lost",
            Self::Stranger(_) => "not an answer",
            Self::WrongCount { .. } => "wrong count",
        }
    }

    /// Whether the connection is of no use any more.
    pub(crate) const fn breaks_connection(&self) -> bool {
        !matches!(self, Self::Refused { .. } | Self::WrongCount { .. })
    }

    /// The end of the command, where this is the end of it.
    pub(crate) fn into_error(self, server: impl fmt::Display) -> Error {
        let why = format!("{server} {self}");
        match self {
            Self::Refused { reason, .. } => of_reason(reason.parse().ok())(why),
            Self::Untrusted(_) | Self::NotTls(_) => Error::Usage(why),
            _ => Error::Unavailable(why),
        }
    }
}

fn of_reason(reason: Option<Reason>) -> fn(String) -> Error {
    let Some(reason) = reason else { return Error::Unavailable };
    match reason {
        Reason::ClockMovedBackwards | Reason::ClockUntrusted | Reason::Quarantined => {
            Error::Refused
        }
        Reason::QuotaExceeded | Reason::TooManyAttempts => Error::Unavailable,
        _ => match reason.http_status() {
            400..=499 => Error::Usage,
            _ => Error::Unavailable,
        },
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { reason, detail } => {
                write!(f, "refused the request: {reason}: {detail}.")?;
                match reason.parse::<Reason>() {
                    Ok(Reason::Unauthenticated) => f.write_str(
                        " Name the file that has its key with --key-file, or set FRAZIL_KEY.",
                    ),
                    Ok(reason) => write!(f, " {}", reason.help()),
                    Err(_) => f.write_str(" Is it a frazil server?"),
                }
            }
            Self::TimedOut => {
                f.write_str("did not answer in time: is it overloaded? --timeout waits longer")
            }
            Self::Unreachable(why) => write!(
                f,
                "cannot be reached: {why}; is `frazil serve` running there? A URL names another \
                 server, --library needs none"
            ),
            Self::Untrusted(why) => write!(
                f,
                "and this command do not trust each other: {why}; --ca names whom to trust, \
                 --cert and --cert-key are our own certificate"
            ),
            Self::NoDescriptors(why) => write!(
                f,
                "cannot be reached: {why}: this process may have {} files and connections open; raise \
                 that with `ulimit -n`, or ask for fewer --connections",
                descriptors::allowed()
            ),
            Self::NotTls(why) => write!(
                f,
                "does not speak TLS there: {why}; write the URL without TLS (http, grpc, resp), or \
                 name the port that has it"
            ),
            Self::Lost(why) => write!(
                f,
                "ended the connection: {why}; is it another protocol's port, or does it want TLS?"
            ),
            Self::Stranger(why) => write!(
                f,
                "does not answer as a frazil server does: {why}; is it another protocol's port, or \
                 does it want TLS?"
            ),
            Self::WrongCount { asked, got } => {
                write!(f, "was asked for {asked} IDs and gave {got}: look at its log")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_ends_the_command_as_the_catalogue_says() {
        type Kind = fn(String) -> Error;
        let kinds: [(&str, Kind); 6] = [
            ("NOT_FOUND", Error::Usage),
            ("UNAUTHENTICATED", Error::Usage),
            ("QUOTA_EXCEEDED", Error::Unavailable),
            ("OVERLOADED", Error::Unavailable),
            ("CLOCK_UNTRUSTED", Error::Refused),
            ("ERR", Error::Unavailable),
        ];
        for (reason, kind) in kinds {
            let error = Fault::refused(reason, "so").into_error("it");
            assert_eq!(error, kind(error.to_string()));
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn a_process_without_descriptors_is_told_so_and_what_to_do() {
        for errno in [Errno::MFILE, Errno::NFILE] {
            let fault = Fault::unreachable(errno.into());
            assert_eq!(fault.name(), "too many open files");
            assert!(fault.to_string().contains("`ulimit -n`"), "{fault}");
        }
        let refused = Fault::unreachable(Errno::CONNREFUSED.into());
        assert_eq!(refused.name(), "cannot connect", "the control");
    }

    #[test]
    fn what_a_server_says_cannot_steer_the_terminal() {
        let text = Fault::refused("\u{1b}[2J", "a\u{1b}b").to_string();
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(!Fault::stranger("\u{7}").to_string().contains('\u{7}'));
    }
}
