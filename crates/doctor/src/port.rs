//! The ports that a server is to listen on.

mod occupant;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use self::occupant::Occupant;
use crate::check::apart;
use crate::finding::Finding;

/// The listeners, each with its check and its flag.
pub const LISTENERS: [&str; 4] = ["http", "grpc", "resp", "admin"];

/// Where a server is to listen.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// The addresses, in the order of [`LISTENERS`]; none for those that are off.
    pub addresses: [Option<SocketAddr>; LISTENERS.len()],
    /// Whether there is a certificate.
    pub has_tls: bool,
    /// Whether there are API keys.
    pub has_keys: bool,
    /// Whether others may reach it all the same if one of them is missing.
    pub is_insecure: bool,
}

/// Whether the addresses can be had, and who else can reach them: the checks [`LISTENERS`].
pub async fn ports(listening: Listening) -> Vec<Finding> {
    let wanted = listening.addresses;
    let mut findings = apart("ports", move || {
        (0..LISTENERS.len()).map(|index| judge_port(index, &wanted)).collect()
    })
    .await;
    // Without the flag that is a fault of the configuration.
    if let Some(missing) = listening.missing().filter(|_| listening.is_insecure) {
        findings.extend(exposed(&wanted, missing));
    }
    findings
}

type Wanted = [Option<SocketAddr>; LISTENERS.len()];

impl Listening {
    /// What does not guard the listeners.
    const fn missing(&self) -> Option<&'static str> {
        match (self.has_tls, self.has_keys) {
            (false, false) => Some("without TLS and without keys"),
            (false, true) => Some("without TLS: keys can be read on the way"),
            (true, false) => Some("without keys: whoever connects gets IDs"),
            (true, true) => None,
        }
    }
}

fn judge_port(index: usize, wanted: &Wanted) -> Finding {
    let check = LISTENERS[index];
    let Some(address) = wanted[index] else {
        return Finding::skipped(check, "off");
    };
    if address.port() == 0 {
        return Finding::ok(check, format!("a free port of {} is taken", address.ip()));
    }
    if let Some(other) = (0..index).find(|other| wanted[*other] == Some(address)) {
        let other = LISTENERS[other];
        let why = format!("{address} is to be used for {other} too: see configuration");
        return Finding::skipped(check, why);
    }
    // Closed at once: it was only to be seen whether that can be.
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(check, format!("{address} is free")),
        Err(error) => match error.kind() {
            ErrorKind::AddrInUse => taken(check, address),
            ErrorKind::PermissionDenied => Finding::fail(
                check,
                format!("{address} is not for this user: {error}"),
                format!(
                    "--{check} with a port above 1023, or AmbientCapabilities=CAP_NET_BIND_SERVICE \
                     in its unit"
                ),
            ),
            ErrorKind::AddrNotAvailable => Finding::fail(
                check,
                format!("no interface here has the address {}", address.ip()),
                format!("--{check} with an address that `ip addr` shows"),
            ),
            _ => Finding::fail(
                check,
                format!("{address} cannot be listened on: {error}"),
                format!("--{check} with another address"),
            ),
        },
    }
}

fn taken(check: &'static str, address: SocketAddr) -> Finding {
    match occupant::of(address) {
        Occupant::Frazil(who) => Finding::ok(check, format!("{address} is served by {who}")),
        Occupant::Other(who) => Finding::fail(
            check,
            format!("{address} is in use by {who}"),
            format!("--{check} with another port, or stop that program"),
        ),
    }
}

fn exposed(wanted: &Wanted, missing: &str) -> Vec<Finding> {
    let reachable = LISTENERS.iter().zip(wanted).filter_map(|(check, address)| {
        let address = address.filter(|at| !at.ip().to_canonical().is_loopback())?;
        Some((*check, address))
    });
    let row = |(check, address): (&'static str, SocketAddr)| {
        let detail = format!("{address} can be reached from other machines, {missing}");
        let fix = format!(
            "--tls-cert, --tls-key and --keys instead of --insecure, or --{check} 127.0.0.1:{}",
            address.port()
        );
        Finding::warn(check, detail, fix)
    };
    reachable.map(row).collect()
}
