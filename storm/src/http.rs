//! Just enough HTTP/1.1 to ask a node, written here so that no line of it is shared with the server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::socket;

/// More than any answer has.
const BODY_BYTES_MAX: usize = 4 << 20;

/// A connection on which requests follow each other.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

/// What was answered.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// `frazil-token`.
    pub(crate) token: Option<u64>,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    /// Connects; a request on it takes no longer than `patience`.
    pub(crate) fn open(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        Ok(Self { stream: socket::connect(address, patience)? })
    }

    /// Sends a request without a body and waits for the answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, accept: &str) -> io::Result<Reply> {
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: storm\r\naccept: {accept}\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read()
    }

    /// Sends a request that the other side may refuse before it has all of it.
    pub(crate) fn ask_too_much(&mut self, method: &str, path: &str) -> io::Result<Reply> {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: storm\r\n\r\n");
        let sent = self.stream.get_mut().write_all(request.as_bytes());
        self.read().or_else(|error| sent.and(Err(error)))
    }

    fn read(&mut self) -> io::Result<Reply> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut reply = Reply { status: status.ok_or_else(strange)?, ..Reply::default() };
        let (mut length, mut is_chunked) = (None, false);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                if line.is_empty() {
                    break;
                }
                return Err(strange());
            };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Some(value.parse().map_err(|_| strange())?),
                "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
                "frazil-token" => reply.token = Some(value.parse().map_err(|_| strange())?),
                _ => {}
            }
        }
        match length {
            Some(length) => self.append(&mut reply.body, length)?,
            None if is_chunked => self.chunks(&mut reply.body)?,
            None => return Err(strange()),
        }
        Ok(reply)
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let size = self.line()?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(|_| strange())?;
            self.append(body, size)?;
            if !self.line()?.is_empty() {
                return Err(strange());
            }
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn append(&mut self, body: &mut Vec<u8>, length: usize) -> io::Result<()> {
        let begin = body.len();
        if begin + length > BODY_BYTES_MAX {
            return Err(strange());
        }
        body.resize(begin + length, 0);
        self.stream.read_exact(&mut body[begin..])
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.by_ref().take(1 << 16).read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// Asks once, on a connection of its own.
pub(crate) fn ask_once(address: SocketAddr, method: &str, path: &str) -> io::Result<(u16, String)> {
    let mut connection = Connection::open(address, Duration::from_secs(2))?;
    let reply = connection.ask(method, path, "*/*")?;
    Ok((reply.status, String::from_utf8_lossy(&reply.body).into_owned()))
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer that is not HTTP as a node speaks it")
}
