//! Why a server cannot begin, and what to do about it.

use std::net::SocketAddr;
use std::{fmt, io};

use frazil::StartError;

use super::SCOPES_MAX;
use crate::keys::KeysError;
use crate::tls::TlsError;

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
    /// A scope is declared twice.
    ScopeTwice(String),
    /// More scopes than there can be.
    TooManyScopes(usize),
    /// Others can reach a listener that has no TLS or no keys.
    Exposed(SocketAddr),
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
            Self::Listen { protocol, address, error } => write!(
                f,
                "{protocol} cannot listen on {address}: {error}; choose another address, or port 0 \
                 for a free one"
            ),
            Self::Scope(name) => write!(
                f,
                "{name:?} is not a scope's name: use 1 to 64 letters, digits, '.', '_' or '-'"
            ),
            Self::ScopeTwice(name) => write!(f, "the scope {name} is declared twice"),
            Self::TooManyScopes(count) => {
                write!(f, "{count} scopes are too many: declare at most {SCOPES_MAX}")
            }
            Self::Exposed(address) => write!(
                f,
                "{address} can be reached from other machines: give it a certificate (--tls-cert, \
                 --tls-key) and keys (--keys), listen on 127.0.0.1, or say --insecure"
            ),
            Self::Keys(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Node(error) => error.fmt(f),
            Self::Threads(error) => write!(f, "the threads that serve cannot be started: {error}"),
        }
    }
}

impl std::error::Error for BindError {}
