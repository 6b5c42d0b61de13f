//! Can a server listen where it is to listen?

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use super::occupant::{self, Occupant};
use super::report::{Row, aside};
use crate::args::DoctorArgs;

/// The protocols, each with its check and its flag.
const PROTOCOLS: [&str; 3] = ["http", "grpc", "resp"];

pub(super) async fn look(args: &DoctorArgs) -> Vec<Row> {
    let wanted = [args.http.0, args.grpc.0, args.resp.0];
    aside("ports", move || (0..PROTOCOLS.len()).map(|index| judge(index, &wanted)).collect()).await
}

fn judge(index: usize, wanted: &[Option<SocketAddr>; 3]) -> Row {
    let check = PROTOCOLS[index];
    let Some(address) = wanted[index] else {
        return Row::skipped(check, "off");
    };
    if address.port() == 0 {
        return Row::ok(check, format!("a free port of {} is taken", address.ip()));
    }
    if let Some(other) = (0..index).find(|other| wanted[*other] == Some(address)) {
        let detail = format!("{address} is to be used for {} too", PROTOCOLS[other]);
        return Row::fail(check, detail, format!("--{check} with a port of its own"));
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
