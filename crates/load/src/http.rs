//! Asking over HTTP/1.1, on a connection that is kept.

use std::ops::Range;
use std::time::Instant;

use frazil_wire::{Problem, ScopeInfo, ScopeKind, query_value};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::book::Book;
use crate::chunked::Chunked;
use crate::client::{Facts, layout, lost};
use crate::connect::Io;
use crate::fault::Fault;
use crate::moment::now;
use crate::plan::{Accept, Plan};

/// Bytes that are read at once at the least.
const READ_BYTES: usize = 16 * 1024;
/// Headers of an answer: a frazil server sends fewer than ten, a proxy adds its own.
const HEADERS_MAX: usize = 64;
/// Bytes of a head: one that is longer is none.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a body: four million IDs in JSON are less than half of that.
pub(crate) const BODY_BYTES_MAX: usize = 256 << 20;

/// A connection. The key is in its texts, so nothing prints it.
pub(crate) struct Http {
    io: Io,
    /// The request, which is always the same.
    request: Vec<u8>,
    accept: Accept,
    /// The end of every request: whom it is for, and the key.
    headers: String,
    scope: Option<String>,
    buffer: Vec<u8>,
    filled: usize,
    is_over: bool,
}

/// An answer in the buffer.
struct Answer {
    status: u16,
    body: Range<usize>,
    /// When its last byte was there.
    at: Instant,
}

impl Http {
    pub(crate) async fn open(plan: &Plan, accept: Accept) -> Result<Self, Fault> {
        let headers = match plan.key() {
            None => format!("host: {}\r\n", plan.address.authority()),
            Some(key) => {
                let host = plan.address.authority();
                format!("host: {host}\r\nauthorization: Bearer {}\r\n", key)
            }
        };
        let form = match accept {
            Accept::Json => "application/json",
            Accept::Text => "text/plain",
            Accept::Binary => "application/octet-stream",
        };
        let scope = plan.scope.as_ref().map(|scope| format!("&scope={}", query_value(scope)));
        let scope_part = scope.unwrap_or_default();
        let line = format!("POST /v1/ids?count={}{scope_part} HTTP/1.1\r\n", plan.batch);
        let rest = format!("{headers}accept: {form}\r\ncontent-length: 0\r\n\r\n");
        Ok(Self {
            io: Io::connect(plan, Some(b"http/1.1")).await?,
            request: (line + &rest).into_bytes(),
            accept,
            headers,
            scope: plan.scope.clone(),
            buffer: vec![0; READ_BYTES],
            filled: 0,
            is_over: false,
        })
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) async fn facts(&mut self) -> Result<Facts, Fault> {
        let request = format!("GET /v1/info HTTP/1.1\r\n{}\r\n", self.headers);
        self.io.write_all(request.as_bytes()).await.map_err(lost)?;
        let answer = self.answer().await?;
        if answer.status != 200 {
            return Err(self.refusal(&answer));
        }
        let info: InfoPart = serde_json::from_slice(&self.buffer[answer.body])
            .map_err(|error| Fault::stranger(format_args!("/v1/info is not as it was: {error}")))?;
        let is_strict = |scope: &ScopeInfo| {
            Some(&scope.name) == self.scope.as_ref() && scope.kind == ScopeKind::Strict
        };
        Ok(Facts {
            layout: layout(&info.layout.text)?,
            version: info.version,
            node: info.node.name,
            max_count: info.limits.max_count,
            is_strict: info.scopes.iter().any(is_strict),
        })
    }

    pub(crate) async fn round(&mut self, book: &mut Book) -> Result<(), Fault> {
        self.io.write_all(&self.request).await.map_err(lost)?;
        let answer = self.answer().await?;
        if answer.status != 200 {
            return book.refused(self.refusal(&answer));
        }
        let worker = read_ids(self.accept, &self.buffer[answer.body], book)?;
        book.answered(answer.at, worker);
        Ok(())
    }

    /// Reads a whole answer. Nothing comes after it, because nothing else was asked.
    async fn answer(&mut self) -> Result<Answer, Fault> {
        self.filled = 0;
        let head = loop {
            self.read().await?;
            if let Some(head) = Head::parse(&self.buffer[..self.filled])? {
                break head;
            }
            if self.filled > HEAD_BYTES_MAX {
                return Err(Fault::stranger("its head has no end"));
            }
        };
        let (body_end, end) = match head.body {
            Body::Length(bytes) => self.body_of(head.length + bytes).await?,
            Body::Chunked => self.body_in_chunks(head.length).await?,
        };
        let at = now();
        if self.filled > end {
            return Err(Fault::stranger("more comes than was asked for"));
        }
        self.is_over = head.is_last;
        Ok(Answer { status: head.status, body: head.length..body_end, at })
    }

    /// Reads up to an end that is known; where the body and the answer end.
    async fn body_of(&mut self, end: usize) -> Result<(usize, usize), Fault> {
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        while self.filled < end {
            self.read().await?;
        }
        Ok((end, end))
    }

    /// Reads up to the last chunk; where the body and the answer end.
    async fn body_in_chunks(&mut self, begin: usize) -> Result<(usize, usize), Fault> {
        let mut chunks = Chunked::new(begin);
        loop {
            if let Some(end) = chunks.advance(&mut self.buffer[..self.filled])? {
                return Ok((chunks.body_end(), end));
            }
            if self.filled > HEAD_BYTES_MAX + BODY_BYTES_MAX {
                return Err(Fault::stranger("its chunks have no end"));
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<(), Fault> {
        if self.buffer.len() < self.filled + READ_BYTES / 2 {
            self.buffer.resize(self.filled + READ_BYTES, 0);
        }
        match self.io.read(&mut self.buffer[self.filled..]).await.map_err(lost)? {
            0 => Err(Fault::Lost("it was closed before the answer was whole".to_owned())),
            read => {
                self.filled += read;
                Ok(())
            }
        }
    }

    fn refusal(&self, answer: &Answer) -> Fault {
        let status = answer.status;
        match serde_json::from_slice::<Problem>(&self.buffer[answer.body.clone()]) {
            Ok(problem) => Fault::refused(&problem.reason, &problem.detail),
            Err(_) => Fault::stranger(format_args!("it has the status {status}")),
        }
    }
}

/// What of a head matters here.
struct Head {
    status: u16,
    /// Bytes of the head.
    length: usize,
    body: Body,
    /// Whether the server closes the connection after it.
    is_last: bool,
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Length(usize),
    /// As long as its chunks are.
    Chunked,
}

impl Head {
    /// The head, once it is whole.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, Fault> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(bytes);
        let parsed =
            parsed.map_err(|error| Fault::stranger(format_args!("it is not HTTP: {error}")))?;
        let httparse::Status::Complete(length) = parsed else { return Ok(None) };
        let (mut length_told, mut is_chunked) = (None, false);
        let mut is_last = response.version == Some(0);
        for header in response.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                let text = str::from_utf8(header.value).unwrap_or_default();
                length_told = text.parse().ok().filter(|bytes| *bytes <= BODY_BYTES_MAX);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = header.value.eq_ignore_ascii_case(b"chunked");
                if !is_chunked {
                    return Err(Fault::stranger("its transfer encoding is not chunked alone"));
                }
            } else if header.name.eq_ignore_ascii_case("connection") {
                is_last |= header.value.eq_ignore_ascii_case(b"close");
            }
        }
        let body = match (is_chunked, length_told) {
            // Chunks count for more where somebody says both.
            (true, _) => Body::Chunked,
            (false, Some(bytes)) => Body::Length(bytes),
            (false, None) => return Err(Fault::stranger("it does not say how long it is")),
        };
        let status = response.code.unwrap_or_default();
        Ok(Some(Self { status, length, body, is_last }))
    }
}

/// Enters the IDs of a body; the worker, if the form has it.
fn read_ids(accept: Accept, body: &[u8], book: &mut Book) -> Result<Option<u32>, Fault> {
    match accept {
        Accept::Binary if body.len().is_multiple_of(8) => {
            book.ids(body);
            Ok(None)
        }
        Accept::Binary => Err(Fault::stranger("its length is no multiple of 8")),
        Accept::Text => {
            let lines = body.strip_suffix(b"\n").unwrap_or(body).split(|byte| *byte == b'\n');
            for line in lines {
                book.id(number(line).ok_or_else(|| Fault::stranger("a line is no ID"))?);
            }
            Ok(None)
        }
        Accept::Json => {
            let reply: Reply<'_> = serde_json::from_slice(body)
                .map_err(|error| Fault::stranger(format_args!("its JSON: {error}")))?;
            for id in reply.ids {
                let id = number(id.as_bytes()).ok_or_else(|| Fault::stranger("that is no ID"))?;
                book.id(id);
            }
            Ok(Some(reply.metadata.worker))
        }
    }
}

/// A number in decimal; nothing else.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// What is needed of an answer in JSON, without copies.
#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    ids: Vec<&'a str>,
    metadata: ReplyMetadata,
}

#[derive(Deserialize)]
struct ReplyMetadata {
    worker: u32,
}

/// What is needed of `/v1/info`.
#[derive(Deserialize)]
struct InfoPart {
    version: String,
    layout: LayoutPart,
    limits: LimitsPart,
    #[serde(default)]
    scopes: Vec<ScopeInfo>,
    node: NodePart,
}

#[derive(Deserialize)]
struct LayoutPart {
    text: String,
}

#[derive(Deserialize)]
struct LimitsPart {
    max_count: u64,
}

#[derive(Deserialize)]
struct NodePart {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\nx: y\r\n\r\n0123";
        for end in 0..text.len() - 4 {
            assert!(Head::parse(&text[..end]).unwrap().is_none(), "{end}");
        }
        let head = Head::parse(text).unwrap().unwrap();
        assert_eq!((head.status, head.length), (200, text.len() - 4));
        assert_eq!(head.body, Body::Length(16));
        assert!(!head.is_last);
        let last = b"HTTP/1.1 503 No\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n";
        assert!(Head::parse(last).unwrap().unwrap().is_last);
        let chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n";
        assert_eq!(Head::parse(chunks).unwrap().unwrap().body, Body::Chunked);
    }

    #[test]
    fn what_is_no_head_is_told() {
        for text in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        ] {
            assert!(Head::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_digits_alone() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "18446744073709551616", "-1", "+1", "1 ", "0x1"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}
