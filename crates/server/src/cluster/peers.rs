//! Other nodes, asked for IDs with what `frazil-client` asks servers with.

mod answer;
mod check;
mod warnings;

use std::fmt;
use std::time::Duration;

use frazil::coord::internal::write_causes;
use frazil_client::Error;
use frazil_client::between_nodes::{IdsRequest, NodeFiles, Nodes};
use frazil_id::Layout;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

pub(crate) use self::answer::{ForwardError, LeaderAnswer};
pub(crate) use self::check::{Expected, Times, check};
pub(crate) use self::warnings::{PeerSettings, PeerWarning};
use crate::config::Config;

/// Says that a node forwards a request, and which one. Such a request is never forwarded again, and
/// where there are keys it needs one with the role `peer`.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("frazil-forwarded");
/// How long the client of a forwarded request still waits, in milliseconds.
pub(crate) const PATIENCE: HeaderName = HeaderName::from_static("frazil-patience-ms");
/// Who issued the IDs of an answer, where it stands, and the token of the lease.
pub(crate) const NODE: HeaderName = HeaderName::from_static("frazil-node");
pub(crate) const REGION: HeaderName = HeaderName::from_static("frazil-region");
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("frazil-token");
/// The token that the node leads the scope with, in answers to forwarded requests.
pub(crate) const LEADER_TOKEN: HeaderName = HeaderName::from_static("frazil-leader-token");

/// Asks other nodes for IDs.
#[derive(Debug)]
pub(crate) struct Peers {
    name: HeaderValue,
    nodes: Nodes,
}

/// What a node is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardRequest<'a> {
    pub(crate) scope: &'a str,
    pub(crate) count: u32,
    pub(crate) patience: Duration,
}

/// Why other nodes cannot be asked as the configuration says.
#[derive(Clone, Debug)]
pub struct PeersError(Error);

impl Peers {
    pub(crate) fn new(config: &Config) -> Result<Self, PeersError> {
        let own = config.tls.as_ref();
        let files = NodeFiles {
            key: config.peer_key_file.clone(),
            ca: config.peer_ca.clone(),
            identity: own.map(|own| (own.cert.clone(), own.key.clone())),
        };
        let name = HeaderValue::from_bytes(config.name.as_bytes());
        let name = name.unwrap_or_else(|_| HeaderValue::from_static("a node"));
        Ok(Self { name, nodes: Nodes::new(files)? })
    }

    /// Reads the key, the authorities and the node's own certificate again. Connections that were
    /// opened with the certificates before are not used again. What is wrong changes nothing.
    pub(crate) fn reload(&self, done: &mut Vec<String>, problems: &mut Vec<String>) {
        for (reloaded, what) in [
            (self.nodes.reload_key(), "the key for other nodes"),
            (self.nodes.reload_trust(), "the authorities of other nodes"),
        ] {
            match reloaded {
                Ok(true) => done.push(what.to_owned()),
                Ok(false) => {}
                Err(error) => problems.push(format!("{:#}", PeersError::from(error))),
            }
        }
    }

    /// Asks the node at an address for IDs of a scope.
    pub(crate) async fn ask(
        &self,
        base: &str,
        request: ForwardRequest<'_>,
        layout: &Layout,
    ) -> Result<LeaderAnswer, ForwardError> {
        let ForwardRequest { scope, count, patience } = request;
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let headers = [(FORWARDED, self.name.clone()), (PATIENCE, patience.into())];
        let request = IdsRequest { count, scope, headers: HeaderMap::from_iter(headers) };
        answer::understood(base, self.nodes.ids(base, request, layout).await)
    }
}

/// A header's text, whatever its bytes.
pub(crate) fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

impl From<Error> for PeersError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for PeersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("other nodes cannot be asked: what is shown to them, or which are trusted")?;
        if f.alternate() { write_causes(f, self) } else { Ok(()) }
    }
}

impl std::error::Error for PeersError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
