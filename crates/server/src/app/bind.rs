//! The start of a server, before it serves: its listeners, its keys, and what its node tells others.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use frazil::coord::Scheme;
use tokio::net::{TcpListener, TcpSocket};

use super::{Addrs, BindError};
use crate::cluster::cache::{ADMIN, LISTEN};
use crate::cluster::peers::{PeerSettings, PeerWarning};
use crate::cluster::scopes::ADVERTISE;
use crate::config::rules::{self, ConfigError};
use crate::config::{Config, LaneCount};
use crate::net::connection_limits::{ADMIN_CONNECTIONS, SPARE_DESCRIPTORS};
use crate::policy::keys::{self, KeyEntry, KeySource, Keyring};

/// Connections that wait to be accepted, if the kernel allows as many (`net.core.somaxconn`). Of more than that the
/// kernel drops some, and their clients try again after a second: all clients of a node that failed come at once.
const BACKLOG: u32 = 4096;
/// File descriptors that the connections of the three protocols leave alone: for the store, the
/// files, the log, probes and administrators.
pub const DESCRIPTORS_KEPT: usize = 64 + ADMIN_CONNECTIONS + 4 * SPARE_DESCRIPTORS;

/// As many connections of each protocol as file descriptors allow.
pub(super) fn connections_max(wanted: usize) -> usize {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    // Where there are few, half of them serve all the same.
    let free = most.saturating_sub(DESCRIPTORS_KEPT).max(most / 2);
    wanted.min((free / 3).max(1))
}

pub(super) fn listen(
    protocol: &'static str,
    address: Option<SocketAddr>,
) -> Result<Option<TcpListener>, BindError> {
    let Some(address) = address else { return Ok(None) };
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A node that restarts need not wait for what its predecessor had open.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().map(Some).map_err(|error| BindError::Listen { protocol, address, error })
}

/// Where other nodes reach this one, if they can.
pub(super) fn peer_address(config: &Config, addrs: Addrs) -> Option<String> {
    let own = || listen_address(config, addrs.http);
    config.advertise.clone().filter(|_| addrs.http.is_some()).or_else(own)
}

/// Where a listener for HTTP is reached, unless it listens everywhere: then the node does not know.
fn listen_address(config: &Config, address: Option<SocketAddr>) -> Option<String> {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let own = address.filter(|address| !address.ip().is_unspecified());
    own.map(|address| format!("{scheme}://{address}"))
}

pub(super) fn warn_of_peers(config: &Config, keys: Option<&[KeyEntry]>) {
    let settings = PeerSettings {
        scopes: &config.scopes,
        keys,
        key_file: config.peer_key_file.as_deref(),
        ca: config.peer_ca.as_deref(),
    };
    for PeerWarning { detail, fix } in settings.warnings() {
        tracing::warn!("{detail}; {fix}");
    }
}

/// The node with what its peers should know of it.
pub(super) fn described(config: &Config, addrs: Addrs) -> frazil::Builder {
    let lanes = match config.lanes {
        LaneCount::Fixed(lanes) => lanes,
        LaneCount::Auto => 1,
    };
    let mut node = config.node.clone().holder(&config.name).lanes(lanes);
    let listen = listen_address(config, addrs.http);
    let admin = listen_address(config, addrs.admin);
    for (name, value) in [
        ("region", &config.region),
        ("zone", &config.zone),
        (ADVERTISE, &config.advertise),
        (LISTEN, &listen),
        (ADMIN, &admin),
    ] {
        if let Some(value) = value {
            node = node.info(name, value);
        }
    }
    node
}

/// The keys at the start: those of the file, or none yet where they are in the store.
pub(super) fn keyring(config: &Config) -> Result<Option<Keyring>, BindError> {
    Ok(match &config.keys {
        None => None,
        Some(KeySource::Store) => {
            let store = config.node.store_to_open().map_err(BindError::Node)?;
            if store.scheme == Scheme::Memory {
                return Err(BindError::KeysInMemory);
            }
            Some(Keyring::unread())
        }
        Some(KeySource::File(path)) => {
            let entries = keys::read(path).map_err(BindError::Keys)?;
            Some(Keyring::new(entries, None, NonZeroU32::MIN))
        }
    })
}

/// Refuses listeners that must not be, and warns of those that are meant.
pub(super) fn check_listeners(config: &Config) -> Result<(), BindError> {
    for problem in rules::listeners(config) {
        if let ConfigError::Bind(error) = problem.error {
            return Err(error);
        }
    }
    let listeners = [config.http, config.grpc, config.resp, config.admin];
    if let Some(address) = listeners.into_iter().flatten().find(rules::is_exposed)
        && !rules::is_guarded(config)
    {
        tracing::warn!(
            %address,
            "other machines can reach this listener, and it has no TLS or no API keys"
        );
    }
    Ok(())
}
