//! The errors of a server: why it cannot begin, and why it ended by itself.

use std::net::SocketAddr;
use std::time::Duration;
use std::{fmt, io};

use frazil::StartError;
use frazil::coord::Refusal;
use frazil::coord::internal::write_causes;
use frazil::election::SettingsError;

use crate::cluster::peers::PeersError;
use crate::cluster::scopes::SCOPES_MAX;
use crate::net::tls::TlsError;
use crate::policy::keys::KeysError;

/// Why a server cannot begin.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// An address cannot be had.
    Listen {
        /// For which protocol.
        protocol: &'static str,
        /// Which one.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// A scope's name is no name.
    Scope(String),
    /// What a scope promises is neither plain nor strict.
    ScopeKind(String),
    /// A strict scope on a store that other nodes do not share.
    StrictAlone(String),
    /// A strict scope on a node that others cannot reach.
    StrictUnreachable,
    /// A strict scope with keys, and none to show to other nodes.
    StrictWithoutKey,
    /// Other nodes cannot be asked as it is told.
    Peers(PeersError),
    /// Leaders cannot be elected with such a TTL.
    ElectionTtl(SettingsError),
    /// A scope is declared twice.
    ScopeTwice(String),
    /// More scopes than there can be.
    TooManyScopes(usize),
    /// Nobody could ask it for IDs.
    NoListener,
    /// Others can reach a listener that has no TLS or no keys.
    Exposed(SocketAddr),
    /// Others can reach the listener for administrators, and there are no keys.
    AdminWithoutKeys(SocketAddr),
    /// The keys are to be in a store that nobody can write them to.
    KeysInMemory,
    /// The keys cannot be read.
    Keys(KeysError),
    /// The certificate cannot be used.
    Tls(TlsError),
    /// The threads that serve cannot be started.
    Threads(io::Error),
    /// The node cannot be as it is described.
    Node(StartError),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { protocol, address, .. } => write!(
                f,
                "{protocol} cannot listen on {address} (choose another address, or port 0 for a \
                 free one)"
            ),
            Self::Scope(name) => write!(
                f,
                "{name:?} is not a scope's name: use 1 to 64 letters, digits, '.', '_' or '-'"
            ),
            Self::ScopeKind(text) => {
                write!(f, "{text:?} is no scope: write a name, name=plain or name=strict")
            }
            Self::StrictAlone(store) => write!(
                f,
                "a strict scope needs a store that all nodes share, and {store} is none: use file:, \
                 redis:, etcd: or zk:, or declare the scope as plain"
            ),
            Self::StrictUnreachable => f.write_str(
                "a strict scope needs an address where other nodes reach this one: listen for HTTP, \
                 and set --advertise if it listens on all addresses",
            ),
            Self::StrictWithoutKey => f.write_str(
                "a strict scope with keys needs a key to show to other nodes: make one with the role \
                 peer, and name its file with --peer-key-file",
            ),
            Self::Peers(error) => error.fmt(f),
            Self::ElectionTtl(_) => f.write_str("leaders cannot be elected so"),
            Self::ScopeTwice(name) => write!(f, "the scope {name} is declared twice"),
            Self::TooManyScopes(count) => {
                write!(f, "{count} scopes are too many: declare at most {SCOPES_MAX}")
            }
            Self::NoListener => f.write_str(
                "all listeners are off, so nobody could ask for IDs: set --http, --grpc or --resp to an \
                 address",
            ),
            Self::Exposed(address) => write!(
                f,
                "{address} can be reached from other machines: give it a certificate (--tls-cert, \
                 --tls-key) and keys (--keys), listen on 127.0.0.1, or say --insecure"
            ),
            Self::AdminWithoutKeys(address) => write!(
                f,
                "whoever reaches {address} could drain this node: nobody administers from other \
                 machines without a key, --insecure or not. Make one (frazil key new --name ops --role \
                 admin --keys keys.toml) and say --keys keys.toml, or listen on loopback (--admin \
                 127.0.0.1:{})",
                address.port()
            ),
            Self::KeysInMemory => f.write_str(
                "nobody can write keys to memory:, which is of this process alone: use another store \
                 (--store), or a file (--keys FILE)",
            ),
            Self::Keys(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Node(error) => error.fmt(f),
            Self::Threads(_) => f.write_str("the threads that serve cannot be started"),
        }?;
        match self {
            Self::Listen { .. } | Self::ElectionTtl(_) | Self::Threads(_) if f.alternate() => {
                write_causes(f, self)
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Their text is that of what they hold, so what comes next is what that rests on.
            Self::Peers(error) => error.source(),
            Self::Keys(error) => error.source(),
            Self::Tls(error) => error.source(),
            Self::Node(error) => error.source(),
            Self::Listen { error, .. } | Self::Threads(error) => Some(error),
            Self::ElectionTtl(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a server ended by itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The node cannot start.
    Start(StartError),
    /// The node refused for too long.
    Refused {
        /// Why it refused.
        why: String,
        /// For how long it might.
        limit: Duration,
    },
}

impl RunError {
    /// The store's refusal, if that is what it is.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Start(StartError::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => error.fmt(f),
            Self::Refused { why, limit } => {
                write!(f, "the node refused for more than {limit:?} and shuts down: {why}")
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its text is that of the error, so what comes next is what that rests on.
            Self::Start(error) => error.source(),
            Self::Refused { .. } => None,
        }
    }
}
