//! Can a server listen where it is to listen, and who reaches it there?

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use super::occupant::{self, Occupant};
use super::report::{Row, aside};
use crate::args::ServeArgs;

/// The listeners, each with its check and its flag.
pub(super) const LISTENERS: [&str; 4] = ["http", "grpc", "resp", "admin"];

type Wanted = [Option<SocketAddr>; LISTENERS.len()];

pub(super) async fn look(args: &ServeArgs) -> Vec<Row> {
    let listen = &args.listen;
    let wanted = [listen.http.0, listen.grpc.0, listen.resp.0, listen.admin.0];
    let missing = missing(args);
    let mut rows =
        aside("ports", move || (0..LISTENERS.len()).map(|index| judge(index, &wanted)).collect())
            .await;
    // Without the flag that is a fault of the configuration.
    if let Some(missing) = missing.filter(|_| listen.insecure) {
        rows.extend(exposed(&wanted, missing));
    }
    rows
}

fn judge(index: usize, wanted: &Wanted) -> Row {
    let check = LISTENERS[index];
    let Some(address) = wanted[index] else {
        return Row::skipped(check, "off");
    };
    if address.port() == 0 {
        return Row::ok(check, format!("a free port of {} is taken", address.ip()));
    }
    if let Some(other) = (0..index).find(|other| wanted[*other] == Some(address)) {
        let other = LISTENERS[other];
        let why = format!("{address} is to be used for {other} too: see configuration");
        return Row::skipped(check, why);
    }
    // Closed at once: it was only to be seen whether that can be.
    match TcpListener::bind(address) {
        Ok(_) => Row::ok(check, format!("{address} is free")),
        Err(error) => match error.kind() {
            ErrorKind::AddrInUse => taken(check, address),
            ErrorKind::PermissionDenied => Row::fail(
                check,
                format!("{address} is not for this user: {error}"),
                format!(
                    "--{check} with a port above 1023, or AmbientCapabilities=CAP_NET_BIND_SERVICE \
                     in its unit"
                ),
            ),
            ErrorKind::AddrNotAvailable => Row::fail(
                check,
                format!("no interface here has the address {}", address.ip()),
                format!("--{check} with an address that `ip addr` shows"),
            ),
            _ => Row::fail(
                check,
                format!("{address} cannot be listened on: {error}"),
                format!("--{check} with another address"),
            ),
        },
    }
}

fn taken(check: &'static str, address: SocketAddr) -> Row {
    match occupant::of(address) {
        Occupant::Frazil(who) => Row::ok(check, format!("{address} is served by {who}")),
        Occupant::Other(who) => Row::fail(
            check,
            format!("{address} is in use by {who}"),
            format!("--{check} with another port, or stop that program"),
        ),
    }
}

/// What does not guard the listeners.
fn missing(args: &ServeArgs) -> Option<&'static str> {
    match (args.tls.tls_cert.is_some(), args.keys.is_some()) {
        (false, false) => Some("without TLS and without keys"),
        (false, true) => Some("without TLS: keys can be read on the way"),
        (true, false) => Some("without keys: whoever connects gets IDs"),
        (true, true) => None,
    }
}

fn exposed(wanted: &Wanted, missing: &str) -> Vec<Row> {
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
        Row::warn(check, detail, fix)
    };
    reachable.map(row).collect()
}
