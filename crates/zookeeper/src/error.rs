//! The ways in which a request or a connection fails.

use std::error;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a request has no result.
///
/// After [`ConnectionLoss`](Self::ConnectionLoss), [`SessionExpired`](Self::SessionExpired),
/// [`SessionMoved`](Self::SessionMoved), [`Malformed`](Self::Malformed) and [`Closed`](Self::Closed)
/// it is not known whether it was carried out. After all others it was not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no such node, or none above the one to be created.
    NoNode,
    /// The node to be created exists.
    NodeExists,
    /// The node has another version.
    BadVersion,
    /// The node to be deleted has children.
    NotEmpty,
    /// The node above the one to be created is ephemeral.
    NoChildrenForEphemerals,
    /// No permission.
    NoAuth,
    /// The login was not accepted. The session is of no more use.
    AuthFailed,
    /// The list of permissions is none.
    InvalidAcl,
    /// An argument is none, such as a path.
    BadArguments,
    /// The session has ended, and its ephemeral nodes with it.
    SessionExpired,
    /// Another connection has taken the session over.
    SessionMoved,
    /// The server takes no writes.
    NotReadOnly,
    /// A quota is used up.
    QuotaExceeded,
    /// The server has too much to do.
    Throttled,
    /// The server does not know the request: it is too old.
    Unimplemented,
    /// The server could not read the request.
    MarshallingError,
    /// Another code of the server.
    Code(i32),
    /// The connection was lost before the answer came.
    ConnectionLoss(Arc<io::Error>),
    /// There was no connection. The request was not sent.
    NotConnected,
    /// Too many requests are under way. The request was not sent.
    Busy,
    /// The request has this many bytes, which is too much. It was not sent.
    TooLarge(usize),
    /// The answer cannot be read, for this reason.
    Malformed(&'static str),
    /// The client's task has ended.
    Closed,
    /// No server began a session; this is why, for each host.
    Unreachable(Arc<[HostFailure]>),
}

/// Why a host began no session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostFailure {
    /// The host and its port.
    pub host: String,
    /// How far it got.
    pub stage: Stage,
    /// The reason; of TLS, with the error of rustls inside.
    pub cause: Arc<io::Error>,
}

/// How far connecting got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The name is being resolved, or the port connected to.
    Connect,
    /// TLS is being agreed on.
    Tls,
    /// The session is being asked for.
    Session,
}

impl Error {
    /// The error that a code in an answer stands for; 0 is none.
    pub(crate) const fn from_code(code: i32) -> Self {
        match code {
            -5 => Self::MarshallingError,
            -6 => Self::Unimplemented,
            -8 => Self::BadArguments,
            -101 => Self::NoNode,
            -102 => Self::NoAuth,
            -103 => Self::BadVersion,
            -108 => Self::NoChildrenForEphemerals,
            -110 => Self::NodeExists,
            -111 => Self::NotEmpty,
            -112 => Self::SessionExpired,
            -114 => Self::InvalidAcl,
            // The second: the server wants a login of another kind.
            -115 | -124 => Self::AuthFailed,
            -118 => Self::SessionMoved,
            -119 => Self::NotReadOnly,
            -125 => Self::QuotaExceeded,
            -127 => Self::Throttled,
            other => Self::Code(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNode => "no such node",
            Self::NodeExists => "the node exists",
            Self::BadVersion => "the node has another version",
            Self::NotEmpty => "the node has children",
            Self::NoChildrenForEphemerals => "an ephemeral node has no children",
            Self::NoAuth => "no permission",
            Self::AuthFailed => "the login was not accepted",
            Self::InvalidAcl => "the list of permissions is not valid",
            Self::BadArguments => "an argument is not valid",
            Self::SessionExpired => "the session has expired",
            Self::SessionMoved => "another connection has taken the session over",
            Self::NotReadOnly => "the server takes no writes",
            Self::QuotaExceeded => "the quota is used up",
            Self::Throttled => "the server has too much to do",
            Self::Unimplemented => "the server does not know the request",
            Self::MarshallingError => "the server could not read the request",
            Self::Code(code) => return write!(f, "the server answered with code {code}"),
            Self::ConnectionLoss(_) => "the connection was lost",
            Self::NotConnected => "not connected",
            Self::Busy => "too many requests are under way",
            Self::TooLarge(bytes) => return write!(f, "the request has {bytes} bytes, too many"),
            Self::Malformed(why) => return write!(f, "the answer cannot be read: {why}"),
            Self::Closed => "the client is closed",
            Self::Unreachable(hosts) => {
                f.write_str("no server began a session")?;
                return hosts.iter().try_for_each(|failure| write!(f, "; {failure}"));
            }
        })
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::ConnectionLoss(cause) => Some(&**cause),
            _ => None,
        }
    }
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.host, self.cause)
    }
}

impl error::Error for HostFailure {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.cause.source()
    }
}
