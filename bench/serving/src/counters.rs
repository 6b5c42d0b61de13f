//! What a node has counted, by its metrics.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use frazil::coord::internal::time::boot_time;

use crate::process::Process;

/// How long metrics may take: a node that is overloaded may be late with them.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// The state of a node's counters at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub(crate) ids: u64,
    /// Requests for IDs that were not answered with any.
    pub(crate) refused: u64,
    /// When they were read, and how long that took.
    pub(crate) at: Duration,
    pub(crate) took: Duration,
}

impl Counters {
    /// Reads them on a connection of its own, as a scraper does.
    pub(crate) fn read(node: &Process, protocol: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let began = boot_time();
        let mut stream = TcpStream::connect(&node.addresses[0])?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let at = boot_time();
        if !answer.starts_with("HTTP/1.1 200") {
            return Err(format!("no metrics: {}", answer.lines().next().unwrap_or_default()).into());
        }
        let protocol = format!("protocol=\"{protocol}\"");
        let (mut ids, mut refused) = (0, 0);
        for line in answer.lines().filter(|line| line.contains(&protocol)) {
            let value = || line.rsplit(' ').next().and_then(|value| value.parse::<u64>().ok());
            if line.starts_with("frazil_ids_issued_total{") {
                ids += value().ok_or(line)?;
            }
            if line.starts_with("frazil_requests_total{") && !line.contains("code=\"OK\"") {
                refused += value().ok_or(line)?;
            }
        }
        Ok(Self { ids, refused, at, took: at.saturating_sub(began) })
    }
}
