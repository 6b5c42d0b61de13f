//! Free loopback ports for servers.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range from which Linux takes the local ports of outgoing connections (32768 and up).
/// Inside that range a client that keeps calling a stopped server could take its port, or even
/// connect to itself, and the server could not be restarted on it.
const PORTS: Range<u16> = 10_000..32_000;

/// How often a server is started again when another process took its port in between.
pub(crate) const START_ATTEMPTS: usize = 5;

/// A port on which nothing listens now.
///
/// Ports are handed out in turn from a random start, so that neither two threads nor two test
/// processes are likely to get the same one.
///
/// # Errors
///
/// If every port of the range is taken.
pub fn free_port() -> io::Result<u16> {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let count = PORTS.end - PORTS.start;
    let next = NEXT.get_or_init(|| {
        let random = RandomState::new().hash_one(std::process::id());
        let start = u16::try_from(random % u64::from(count)).expect("less than a u16");
        AtomicU16::new(start)
    });
    for _ in 0..count {
        // Relaxed: only the number matters, no other memory hangs on it.
        let turn = next.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + turn % count;
        if is_free(port) {
            return Ok(port);
        }
    }
    Err(io::Error::other(format!("no free port in {PORTS:?}")))
}

/// Whether nothing listens on `port` of the loopback address now.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Whether the process listens on `port`, on whatever address.
pub(crate) fn listens(process: u32, port: u16) -> bool {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_sockets(&table, port))
        .collect();
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
}

/// The names, as `/proc/PID/fd` shows them, of the sockets in the table that listen on `port`.
fn listening_sockets(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let local_end = format!(":{port:04X}");
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.len() > 9 && row[1].ends_with(&local_end) && row[3] == LISTEN)
        .map(|row| format!("socket:[{}]", row[9]))
        .collect()
}

/// Runs `start`, which takes fresh ports each time, until it works. It is only repeated when its
/// error says that a port was the reason.
pub(crate) fn retry_on_clash<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut attempt = 1;
    loop {
        match start() {
            Err(error) if attempt < START_ATTEMPTS && is_clash(&error) => attempt += 1,
            result => return result,
        }
    }
}

/// Redis, Go and Java each say it in the log, whose tail is in the error.
fn is_clash(error: &io::Error) -> bool {
    error.to_string().to_lowercase().contains("address already in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ports_differ_and_are_free() {
        let (one, other) = (free_port().unwrap(), free_port().unwrap());
        assert_ne!(one, other);
        assert!(is_free(one) && is_free(other));
    }

    #[test]
    fn only_the_process_that_listens_is_seen_to() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(std::process::id(), port));
        assert!(!listens(std::os::unix::process::parent_id(), port));
        drop(listener);
        assert!(!listens(std::process::id(), port));
    }

    #[test]
    fn a_clash_is_tried_again_but_only_so_often() {
        let mut starts = 0;
        let result: io::Result<()> = retry_on_clash(|| {
            starts += 1;
            Err(io::Error::other("bind: Address already in use"))
        });
        assert!(result.is_err());
        assert_eq!(starts, START_ATTEMPTS);
    }

    #[test]
    fn another_failure_is_not_tried_again() {
        let mut starts = 0;
        let result: io::Result<()> = retry_on_clash(|| {
            starts += 1;
            Err(io::Error::other("no such file"))
        });
        assert!(result.is_err());
        assert_eq!(starts, 1);
    }
}
