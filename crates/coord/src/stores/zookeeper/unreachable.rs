//! The reason why no server let us in, for the operator.

use std::io;

use frazil_zookeeper::{HostFailure, Stage};

use crate::error::{ErrorKind, Failure, Reason};

/// The reason, from the hosts that say most.
pub(super) fn failure(hosts: &[HostFailure]) -> Failure {
    let judged: Vec<_> = hosts.iter().map(judge).collect();
    let denied = judged.iter().any(|(kind, _)| *kind == ErrorKind::Denied);
    let kind = if denied { ErrorKind::Denied } else { ErrorKind::Unavailable };
    let said = judged.into_iter().filter(|(of, _)| *of == kind).map(|(_, why)| why);
    Failure::Definite(kind, all(said.collect()))
}

/// What several hosts say, or the one that there is, with its cause.
fn all(mut reasons: Vec<Reason>) -> Reason {
    match reasons.len() {
        1 => reasons.remove(0),
        _ => reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").into(),
    }
}

fn judge(failed: &HostFailure) -> (ErrorKind, Reason) {
    let cause = &failed.cause;
    let of_tls = cause.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let (kind, why) = match (of_tls, failed.stage) {
        (Some(rustls::Error::InvalidCertificate(_)), _) => {
            (ErrorKind::Denied, "the server's certificate is not trusted")
        }
        (Some(rustls::Error::AlertReceived(_)), _) => {
            (ErrorKind::Denied, "the server rejects us in TLS")
        }
        (Some(_), _) => (ErrorKind::Unavailable, "no TLS there"),
        (None, Stage::Tls) if cause.kind() != io::ErrorKind::TimedOut => {
            (ErrorKind::Unavailable, "no TLS there (is it a port for zk:?)")
        }
        (None, Stage::Session) if is_closed(cause) => (
            ErrorKind::Unavailable,
            "no session: the server has no quorum, has too many connections, or the port wants TLS \
             (zks:)",
        ),
        (None, Stage::Session) => (ErrorKind::Unavailable, "no session"),
        (None, _) => (ErrorKind::Unavailable, "no connection"),
    };
    (kind, Reason::new(why, cause.clone()).after(format_args!("{}:", failed.host)))
}

fn is_closed(cause: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(cause.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}
