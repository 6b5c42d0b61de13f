//! The machine: its clock, the ports that a server is to listen on, and file descriptors.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use frazil::coord::keeper::CLOCK_BOUND_MS;
use frazil::coord::time::{KernelClock, boot_time, kernel_clock, unix_time};
use frazil::coord::{Error, Leasing, Store};
use frazil_server::DESCRIPTORS_KEPT;
use rustix::process::{Resource, Rlimit, getrlimit};

use super::occupant::{self, Occupant};
use super::report::{Row, aside};
use super::store::failed;
use crate::args::ServeArgs;

/// A clock that is wrong by more than this puts IDs of different nodes into a wrong order that
/// people notice.
const ERROR_MAX: Duration = Duration::from_millis(100);
/// How often the store's clock is read: the quickest answer tells it best.
const READS: usize = 5;

const DISCIPLINE: &str = "run a time daemon: apt-get install chrony, or timedatectl set-ntp true; \
                          then chronyc tracking or timedatectl timesync-status tells how it is doing";

/// What the kernel says.
pub(super) fn kernel_clock_row() -> Row {
    judge_clock(kernel_clock())
}

fn judge_clock(clock: Option<KernelClock>) -> Row {
    const CHECK: &str = "clock";
    let Some(clock) = clock else {
        return Row::warn(CHECK, "the kernel does not say whether it is synchronised", DISCIPLINE);
    };
    let bounds = format!(
        "wrong by {} at the most, probably by {}",
        ms(clock.maximum_error),
        ms(clock.estimated_error)
    );
    if !clock.is_synchronized {
        let detail = "not synchronised, according to the kernel: nothing bounds its error";
        return Row::warn(CHECK, detail, DISCIPLINE);
    }
    if clock.maximum_error > ERROR_MAX {
        let fix = "see chronyc sources -v or timedatectl timesync-status: the sources are far \
                   away, or rarely asked (chrony bounds the error more tightly than \
                   systemd-timesyncd)";
        return Row::warn(CHECK, format!("synchronised, but {bounds}"), fix);
    }
    Row::ok(CHECK, format!("synchronised, {bounds}"))
}

/// How the clock agrees with the store's.
pub(super) async fn look_at_store_clock(store: &dyn Store) -> Vec<Row> {
    const CHECK: &str = "store-clock";
    let row = match compare(store).await {
        Err(error) => failed(CHECK, &error),
        Ok(None) => Row::skipped(CHECK, "this store has no clock of its own"),
        Ok(Some(Difference { ahead_ms, unsure })) => {
            let side = if ahead_ms < 0 { "behind" } else { "ahead of" };
            let apart = ahead_ms.unsigned_abs();
            let detail = format!("{apart} ms {side} the store's, within {}", ms(unsure));
            let fix = format!("set the clock right here or on the store's machine; {DISCIPLINE}");
            match apart {
                _ if apart > CLOCK_BOUND_MS => Row::fail(
                    CHECK,
                    format!("{detail}: beyond {CLOCK_BOUND_MS} ms no worker is leased"),
                    fix,
                ),
                _ if u128::from(apart) > ERROR_MAX.as_millis() + unsure.as_millis() => {
                    Row::warn(CHECK, detail, fix)
                }
                _ => Row::ok(CHECK, detail),
            }
        }
    };
    vec![row]
}

/// How far our clock is ahead of another.
struct Difference {
    ahead_ms: i64,
    /// What the way there and back leaves open.
    unsure: Duration,
}

async fn compare(store: &dyn Store) -> Result<Option<Difference>, Error> {
    let mut best: Option<Difference> = None;
    for _ in 0..READS {
        let (asked, began) = (unix_time(), boot_time());
        let Some(theirs) = store.time().await? else { return Ok(None) };
        let trip = boot_time().saturating_sub(began);
        let ours = u64::try_from((asked + trip / 2).as_millis()).unwrap_or(u64::MAX);
        let ahead_ms = ours.cast_signed().saturating_sub(theirs.cast_signed());
        let unsure = trip / 2;
        if best.as_ref().is_none_or(|best| unsure < best.unsure) {
            best = Some(Difference { ahead_ms, unsure });
        }
    }
    Ok(best)
}

/// A duration in milliseconds with as many digits as people read.
pub(super) fn ms(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1000.0;
    match ms {
        _ if ms >= 10.0 => format!("{ms:.0} ms"),
        _ => format!("{ms:.1} ms"),
    }
}

/// The listeners, each with its check and its flag.
pub(super) const LISTENERS: [&str; 4] = ["http", "grpc", "resp", "admin"];

type Wanted = [Option<SocketAddr>; LISTENERS.len()];

pub(super) async fn look_at_ports(args: &ServeArgs) -> Vec<Row> {
    let listen = &args.listen;
    let wanted = [listen.http.0, listen.grpc.0, listen.resp.0, listen.admin.0];
    let missing = missing(args);
    let mut rows = aside("ports", move || {
        (0..LISTENERS.len()).map(|index| judge_port(index, &wanted)).collect()
    })
    .await;
    // Without the flag that is a fault of the configuration.
    if let Some(missing) = missing.filter(|_| listen.insecure) {
        rows.extend(exposed(&wanted, missing));
    }
    rows
}

fn judge_port(index: usize, wanted: &Wanted) -> Row {
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

const DESCRIPTORS: &str = "descriptors";
/// A server shares its descriptors out among these, whether or not it serves all of them.
const PROTOCOLS: u64 = 3;

pub(super) fn look_at_descriptors(max_connections: usize) -> Row {
    let connections = (max_connections as u64).saturating_mul(PROTOCOLS);
    let needed = connections.saturating_add(DESCRIPTORS_KEPT as u64);
    judge_descriptors(needed, getrlimit(Resource::Nofile))
}

fn judge_descriptors(needed: u64, limit: Rlimit) -> Row {
    let shown = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |most| most.to_string());
    let (soft, hard) = (shown(limit.current), shown(limit.maximum));
    let detail =
        format!("{needed} are needed at the most, the limits are {soft} (soft) and {hard} (hard)");
    // A server raises the soft limit to the hard one by itself.
    match limit.maximum {
        Some(most) if most < needed => {
            let kept = DESCRIPTORS_KEPT as u64;
            let fewer = (most.saturating_sub(kept) / PROTOCOLS).max(1);
            Row::warn(
                DESCRIPTORS,
                format!("{detail}: it will take {fewer} connections of each protocol"),
                format!(
                    "LimitNOFILE={needed} in its unit, ulimit -n {needed} as root before it, or \
                     --max-connections {fewer}"
                ),
            )
        }
        _ => Row::ok(DESCRIPTORS, detail),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    #[test]
    fn a_clock_that_nobody_keeps_or_that_may_be_far_off_is_warned_of() {
        let good = KernelClock {
            is_synchronized: true,
            offset_ns: 0,
            estimated_error: Duration::from_micros(200),
            maximum_error: Duration::from_millis(20),
        };
        let loose = KernelClock { maximum_error: Duration::from_millis(101), ..good };
        let free = KernelClock { is_synchronized: false, ..good };
        for (clock, status) in [
            (Some(good), Status::Ok),
            (Some(loose), Status::Warn),
            (Some(free), Status::Warn),
            (None, Status::Warn),
        ] {
            assert_eq!(judge_clock(clock).status(), status, "{clock:?}");
        }
    }
}

#[cfg(test)]
mod descriptors_tests {
    use super::super::report::Status;
    use super::*;

    #[test]
    fn the_hard_limit_counts() {
        for (current, maximum, status) in [
            (Some(1024), Some(1024), Status::Warn),
            (Some(1024), Some(40_000), Status::Ok),
            (None, None, Status::Ok),
        ] {
            assert_eq!(judge_descriptors(30_064, Rlimit { current, maximum }).status(), status);
        }
    }
}
