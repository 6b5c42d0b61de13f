//! Just enough RESP to ask a node for single IDs, as an application does that counts with INCR.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::socket;

const INCR: &str = "*2\r\n$4\r\nINCR\r\n$5\r\nstorm\r\n";
/// More than any line has.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// A connection on which pipelines follow each other.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

/// What a pipeline was answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Replies {
    pub(crate) ids: Vec<u64>,
    /// The first reason for which there was none.
    pub(crate) refused: Option<String>,
}

impl Connection {
    /// Connects; a pipeline on it takes no longer than `patience`.
    pub(crate) fn open(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        Ok(Self { stream: socket::connect(address, patience)? })
    }

    /// Asks for so many single IDs at once.
    pub(crate) fn incr(&mut self, count: u32) -> io::Result<Replies> {
        self.stream.get_mut().write_all(INCR.repeat(count as usize).as_bytes())?;
        read(&mut self.stream, count)
    }
}

fn read(stream: &mut impl BufRead, count: u32) -> io::Result<Replies> {
    let mut replies = Replies::default();
    for _ in 0..count {
        let mut line = String::new();
        stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        match (line.strip_prefix(':').map(str::parse), line.strip_prefix('-')) {
            (Some(Ok(id)), _) => replies.ids.push(id),
            (_, Some(error)) => {
                let reason = error.split(' ').next().unwrap_or_default();
                replies.refused.get_or_insert_with(|| reason.to_owned());
            }
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, line.to_owned())),
        }
    }
    Ok(replies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_reasons_are_told_apart_and_what_is_cut_is_no_answer() {
        let text = ":7\r\n-CLOCK_MOVED_BACKWARDS retry_after_ms=5 why\r\n:18\r\n";
        let refused = Some("CLOCK_MOVED_BACKWARDS".to_owned());
        let replies = read(&mut text.as_bytes(), 3).unwrap();
        assert_eq!(replies, Replies { ids: vec![7, 18], refused });
        assert!(read(&mut ":7\r\n:1".as_bytes(), 2).is_err(), "18 may have been meant");
        assert!(read(&mut "+OK\r\n".as_bytes(), 1).is_err());
        assert!(read(&mut ":-7\r\n".as_bytes(), 1).is_err());
    }
}
