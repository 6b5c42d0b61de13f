//! The meaning of the client's errors: was anything done, and who can help?

use std::error::Error as Cause;
use std::{fmt, io};

use frazil_etcd::{Code, ConfigError, Status};

use crate::error::{ErrorKind, Reason};

/// Why a request was not answered as wished.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing was done; another member, or a later attempt, may do it.
    Undone(Reason),
    /// The lease does not exist any more. Nothing was done.
    NoLease,
    /// Nothing was done, and trying again would not help.
    Refused(ErrorKind, Reason),
    /// It may have been done, or still may be.
    Unanswered(Reason),
    /// The store went back in its history.
    Regressed,
}

/// What etcd says when it has put no request to its cluster. Its other complaints of the same code,
/// such as a time-out, leave open whether the request is carried out.
const NOT_PROPOSED: [&str; 3] = ["no leader", "not supported for learner", "not capable"];

/// Parts of the alerts by which a server refuses a client's certificate. It reads no request then.
const REFUSED_CERTIFICATE: [&str; 4] = ["Certificate", "UnknownCA", "AccessDenied", "DecryptError"];

impl Failure {
    /// The same failure of a request that writes nothing, and leaves nothing unknown.
    pub(super) fn of_read(self) -> Self {
        match self {
            Self::Unanswered(why) => Self::Undone(why),
            other => other,
        }
    }

    /// The kind to report.
    pub(super) const fn kind(&self) -> ErrorKind {
        match self {
            Self::Undone(_) | Self::NoLease => ErrorKind::Unavailable,
            Self::Refused(kind, _) => *kind,
            Self::Unanswered(_) => ErrorKind::Unknown,
            Self::Regressed => ErrorKind::Unsafe,
        }
    }

    /// The reason to report.
    pub(super) fn into_reason(self) -> Reason {
        match self {
            Self::Undone(why) | Self::Refused(_, why) | Self::Unanswered(why) => why,
            Self::NoLease => "leases end as soon as they are granted".into(),
            Self::Regressed => {
                "the store went back in its history, or is another one: was it restored from a \
                 snapshot? run frazil store quarantine, then restart"
                    .into()
            }
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Refused(ErrorKind::InvalidConfig, Reason::of(error))
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let is_unsent = causes(&status).any(is_connecting);
        if let Some(failure) = tls_failure(&status, is_unsent) {
            return failure;
        }
        // A status with a cause was made on this side, since no answer came: its code says nothing of
        // what etcd has done.
        if status.source().is_none() {
            return of_status(status);
        }
        let is_undone = is_unsent || causes(&status).any(is_refused_stream);
        let why = reason_of(status);
        if is_undone { Self::Undone(why) } else { Self::Unanswered(why) }
    }
}

fn reason_of(status: Status) -> Reason {
    Reason::of(StatusError { message: status.message().to_owned(), status })
}

/// What an answer of the server means.
fn of_status(status: Status) -> Failure {
    let code = status.code();
    let why = reason_of(status);
    let text = why.to_string();
    let says = |part: &str| text.contains(part);
    match code {
        Code::Unauthenticated | Code::PermissionDenied | Code::FailedPrecondition => {
            Failure::Refused(ErrorKind::Denied, why)
        }
        // The last two are said to whoever has not logged in.
        Code::InvalidArgument
            if says("authentication failed")
                || says("user name is empty")
                || says("auth store is old") =>
        {
            Failure::Refused(ErrorKind::Denied, why)
        }
        Code::InvalidArgument => Failure::Refused(ErrorKind::InvalidConfig, why),
        Code::NotFound if says("lease not found") => Failure::NoLease,
        // The disk quota is used up, or too many requests are under way. Proxies say the same when they
        // lose an answer.
        Code::ResourceExhausted if says("etcdserver:") => Failure::Undone(why),
        Code::Unimplemented => {
            let why = why.after("not an etcd with the v3 interface");
            Failure::Refused(ErrorKind::InvalidConfig, why)
        }
        Code::Unavailable if NOT_PROPOSED.iter().any(|part| says(part)) => Failure::Undone(why),
        Code::DataLoss => Failure::Refused(ErrorKind::Corrupt, why),
        _ => Failure::Unanswered(why),
    }
}

/// What TLS found wrong before any request was read, if it did.
fn tls_failure(status: &Status, is_unsent: bool) -> Option<Failure> {
    for cause in causes(status) {
        let text = cause.to_string();
        // A server that checks certificates after the handshake says so on a connection that
        // stands; what it said then arrives as text.
        let because = |why: &str| {
            Reason::new(why, StatusError { message: text.clone(), status: status.clone() })
        };
        if let Some((_, alert)) = text.split_once("received fatal alert: ")
            && (is_unsent || REFUSED_CERTIFICATE.iter().any(|part| alert.contains(part)))
        {
            let why = because("the server refused the TLS connection");
            return Some(Failure::Refused(ErrorKind::Denied, why));
        }
        if !is_unsent {
            continue;
        }
        if text.contains("tls handshake eof") {
            let why = "the server ended the TLS handshake: does it speak TLS? etcd: is without";
            return Some(Failure::Undone(because(why)));
        }
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped.and_then(|error| error.downcast_ref::<rustls::Error>()) {
            None => {}
            Some(rustls::Error::InvalidCertificate(_)) => {
                let why = because("the server's certificate is not trusted");
                return Some(Failure::Refused(ErrorKind::Denied, why));
            }
            Some(_) => {
                let why = because("no TLS with this server (etcd: is without TLS)");
                return Some(Failure::Refused(ErrorKind::InvalidConfig, why));
            }
        }
    }
    None
}

/// A status in plain words. What it rests on is its deepest cause: those between say only what was
/// done meanwhile.
#[derive(Debug)]
struct StatusError {
    message: String,
    status: Status,
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Cause for StatusError {
    fn source(&self) -> Option<&(dyn Cause + 'static)> {
        causes(&self.status).last()
    }
}

/// Whether the connection failed before it could carry a request. The type is not public, so its
/// name has to do; if it changes, such failures count as unanswered, which is safe.
fn is_connecting(cause: &(dyn Cause + 'static)) -> bool {
    format!("{cause:?}").starts_with("ConnectError(")
}

/// Whether the server reset the request's stream before it did anything about it.
fn is_refused_stream(cause: &(dyn Cause + 'static)) -> bool {
    cause.downcast_ref::<h2::Error>().is_some_and(|error| {
        error.is_reset() && error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM)
    })
}

fn causes<'a>(error: &'a (dyn Cause + 'static)) -> impl Iterator<Item = &'a (dyn Cause + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: Code, message: &str) -> ErrorKind {
        of_status(Status::new(code, message)).kind()
    }

    #[test]
    fn what_may_have_been_done_is_unknown() {
        for message in ["etcdserver: request timed out", "etcdserver: leader changed", "stopped"] {
            assert_eq!(kind(Code::Unavailable, message), ErrorKind::Unknown, "{message}");
        }
        for code in [Code::Cancelled, Code::Unknown, Code::DeadlineExceeded, Code::Internal] {
            assert_eq!(kind(code, "Timeout expired"), ErrorKind::Unknown, "{code:?}");
        }
        let failure = of_status(Status::deadline_exceeded("")).of_read();
        assert_eq!(failure.kind(), ErrorKind::Unavailable, "reading leaves nothing unknown");
    }

    #[test]
    fn what_the_connection_says_leaves_open_what_was_done() {
        for reason in 0..=0xd {
            // A reason alone does not say that the other side gave it.
            let error = h2::Error::from(h2::Reason::from(reason));
            let failure = Failure::from(Status::from_error(error.into()));
            assert_eq!(failure.kind(), ErrorKind::Unknown, "{failure:?}");
        }
        let lost = "grpc: received message larger than max (5000000 vs. 4194304)";
        assert_eq!(kind(Code::ResourceExhausted, lost), ErrorKind::Unknown);
    }

    #[test]
    fn what_was_not_proposed_is_unavailable() {
        assert_eq!(kind(Code::Unavailable, "etcdserver: no leader"), ErrorKind::Unavailable);
        let full = "etcdserver: mvcc: database space exceeded";
        assert_eq!(kind(Code::ResourceExhausted, full), ErrorKind::Unavailable);
    }

    #[test]
    fn what_the_server_forbids_is_denied() {
        for (code, message) in [
            (Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID"),
            (Code::InvalidArgument, "etcdserver: user name is empty"),
            (Code::PermissionDenied, "etcdserver: permission denied"),
            (Code::Unauthenticated, "etcdserver: invalid auth token"),
        ] {
            assert_eq!(kind(code, message), ErrorKind::Denied, "{message}");
        }
    }
}
