//! A client with one connection that waits for each answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use frazil_wire::proto::Form;
use tokio::runtime::Runtime;

use crate::grpc::Stream;
use crate::process::Process;

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// How long an answer may take: longer than any server of ours lets a request wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

type Failure = Box<dyn std::error::Error>;

/// A way to ask for IDs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) batch: u64,
    pub(crate) request: Request,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The form of the answer.
    Http(&'static str),
    Resp,
    /// Grants of a stream of runs.
    Stream,
}

impl Request {
    pub(crate) const JSON: Self = Self::Http("application/json");
    pub(crate) const BINARY: Self = Self::Http("application/octet-stream");

    /// Which of the addresses of a node it is for.
    const fn place(self) -> usize {
        match self {
            Self::Http(_) => 0,
            Self::Stream => 1,
            Self::Resp => 2,
        }
    }
}

pub(crate) enum Client {
    Plain { stream: TcpStream, request: Vec<u8>, buffer: Vec<u8>, is_http: bool },
    Stream { runtime: Runtime, stream: Box<Stream>, batch: u64 },
}

impl Client {
    pub(crate) fn open(node: &Process, way: Workload) -> Result<Self, Failure> {
        Self::with_key(node, way, None)
    }

    /// One that shows a key with every request, over HTTP.
    pub(crate) fn with_key(
        node: &Process,
        way: Workload,
        key: Option<&str>,
    ) -> Result<Self, Failure> {
        let address = node.addresses[way.request.place()].as_str();
        let (request, is_http) = match way.request {
            Request::Stream => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let stream = Box::new(runtime.block_on(Stream::open(address, Form::Runs))?);
                return Ok(Self::Stream { runtime, stream, batch: way.batch });
            }
            Request::Resp => (format!("*2\r\n$7\r\nID.NEXT\r\n{}", bulk(way.batch)), false),
            Request::Http(accept) => {
                let head = format!("POST /ids?count={} HTTP/1.1", way.batch);
                let key =
                    key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"));
                (format!("{head}\r\nhost: bench\r\naccept: {accept}\r\n{key}\r\n"), true)
            }
        };
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        Ok(Self::Plain { stream, request: request.into_bytes(), buffer: Vec::new(), is_http })
    }

    /// One request and its whole answer.
    pub(crate) fn ask(&mut self) -> Result<(), Failure> {
        match self {
            Self::Stream { runtime, stream, batch } => runtime.block_on(async {
                tokio::time::timeout(ANSWER_WITHIN, stream.take(*batch)).await?
            }),
            Self::Plain { stream, request, buffer, is_http } => {
                stream.write_all(request)?;
                let (mut filled, mut length) = (0, None);
                while length.is_none_or(|length| filled < length) {
                    buffer.resize(buffer.len().max(filled + READ_BYTES), 0);
                    let read = stream.read(&mut buffer[filled..])?;
                    if read == 0 {
                        return Err("the server closed the connection".into());
                    }
                    filled += read;
                    let bytes = &buffer[..filled];
                    if length.is_none() {
                        length = if *is_http { http_length(bytes)? } else { resp_length(bytes)? };
                    }
                }
                Ok(())
            }
        }
    }

    /// The connection alone, to be kept.
    pub(crate) fn into_connection(self) -> Option<TcpStream> {
        match self {
            Self::Plain { stream, .. } => Some(stream),
            Self::Stream { .. } => None,
        }
    }
}

fn bulk(number: u64) -> String {
    let digits = number.to_string();
    format!("${}\r\n{digits}\r\n", digits.len())
}

/// The bytes of a whole answer, as soon as its head is there.
fn http_length(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end])?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(head.to_owned().into());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    Ok(Some(end + 4 + length.ok_or("no length")?.parse::<usize>()?))
}

/// The same for an array of IDs, which all have as many digits as the first, and for what the bare
/// handler answers: an integer.
fn resp_length(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let (Some(count), Some(size)) = (lines.next(), lines.next()) else { return Ok(None) };
    if count.first() == Some(&b':') {
        return Ok(Some(count.len() + 1));
    }
    let Some(_) = lines.next() else { return Ok(None) };
    let number = |line: &[u8], kind: u8| -> Result<usize, Failure> {
        let text = std::str::from_utf8(line)?.trim_end();
        let digits = text.strip_prefix(char::from(kind)).ok_or_else(|| text.to_owned())?;
        Ok(digits.parse()?)
    };
    let (ids, digits) = (number(count, b'*')?, number(size, b'$')?);
    Ok(Some(count.len() + 1 + ids * (size.len() + 1 + digits + 2)))
}
