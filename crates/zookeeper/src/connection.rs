//! One connection: the socket, with or without TLS, and the frames that go over it.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::error::Stage;
use crate::request::Request;

/// The largest frame that is taken and sent, in bytes. Servers take and give 1 MB unless they are
/// told otherwise.
pub(crate) const FRAME_MAX: usize = 4 << 20;

/// What is read at once.
const CHUNK: usize = 8 << 10;

/// What bytes go over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection. Nothing waits in it but what is being read and written.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    /// What came and was not taken yet, from `taken` on.
    came: Vec<u8>,
    taken: usize,
    /// What is to be sent, from `sent` on.
    to_send: Vec<u8>,
    sent: usize,
    is_flushed: bool,
}

/// Connects to a host, and agrees on TLS. The stage is that in which it failed.
pub(crate) async fn open(
    host: &(String, u16),
    tls: Option<&Arc<ClientConfig>>,
    stage: &mut Stage,
) -> io::Result<Connection> {
    let (name, port) = host;
    let stream = TcpStream::connect((name.as_str(), *port)).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Connection::new(stream)) };
    *stage = Stage::Tls;
    let name = ServerName::try_from(name.clone())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let stream = TlsConnector::from(tls.clone()).connect(name, stream).await?;
    Ok(Connection::new(stream))
}

impl Connection {
    pub(crate) fn new(stream: impl Stream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            came: Vec::new(),
            taken: 0,
            to_send: Vec::new(),
            sent: 0,
            is_flushed: true,
        }
    }

    /// Whether much of what is to be sent was not taken by the socket yet.
    pub(crate) const fn is_congested(&self) -> bool {
        self.to_send.len() >= FRAME_MAX
    }

    /// Adds a request with its number to what is to be sent.
    pub(crate) fn push(&mut self, xid: i32, request: &Request) {
        let header = [xid.to_be_bytes(), request.opcode.to_be_bytes()].concat();
        self.push_frame(&[&header, &request.body]);
    }

    /// Adds a frame of these parts. They are of no more than [`FRAME_MAX`].
    pub(crate) fn push_frame(&mut self, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        self.to_send.extend_from_slice(&length.to_be_bytes());
        parts.iter().for_each(|part| self.to_send.extend_from_slice(part));
        self.is_flushed = false;
    }

    /// Sends everything, and gives the next frame.
    pub(crate) async fn exchange(&mut self) -> io::Result<Vec<u8>> {
        poll_fn(|cx| {
            // Why the server does not take what is sent shows in what it answers, if it does.
            let sent = self.poll_send(cx);
            match (self.poll_frame(cx), sent) {
                (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
                (frame, _) => frame,
            }
        })
        .await
    }

    /// Sends what is to be sent.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.to_send.len() {
            let rest = &self.to_send[self.sent..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.sent += count,
            }
        }
        self.to_send.clear();
        self.sent = 0;
        if !self.is_flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// The next frame.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Poll::Ready(Ok(frame));
            }
            let mut chunk = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut chunk))?;
            if chunk.filled().is_empty() {
                let why = "the server closed the connection";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
            }
            self.came.drain(..self.taken);
            self.taken = 0;
            self.came.extend_from_slice(chunk.filled());
        }
    }

    fn take_frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        let came = &self.came[self.taken..];
        let Some((length, rest)) = came.split_first_chunk() else { return Ok(None) };
        let length = i32::from_be_bytes(*length);
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= FRAME_MAX)
        else {
            return Err(malformed(format!("a frame of {length} bytes")));
        };
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let frame = frame.to_vec();
        self.taken += length + 4;
        Ok(Some(frame))
    }
}

/// What the server sends is not what the protocol says.
pub(crate) fn malformed(why: impl fmt::Display) -> io::Error {
    let why = format!("the server does not keep to the protocol: {why}");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn frames_are_taken_one_by_one_however_they_come() {
        let (ours, mut theirs) = duplex(3);
        let mut connection = Connection::new(ours);
        let writing = tokio::spawn(async move {
            theirs.write_all(b"\0\0\0\x02ab\0\0\0\0\0\0\0\x03cde\0\0").await.unwrap();
        });
        for frame in ["ab", "", "cde"] {
            assert_eq!(connection.exchange().await.unwrap(), frame.as_bytes());
        }
        let cut = connection.exchange().await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        writing.await.unwrap();
    }

    #[tokio::test]
    async fn a_length_that_cannot_be_is_refused_before_anything_is_kept_for_it() {
        for length in [-1, i32::MIN, i32::MAX, 4 * 1024 * 1024 + 1] {
            let (ours, mut theirs) = duplex(64);
            theirs.write_all(&length.to_be_bytes()).await.unwrap();
            let mut connection = Connection::new(ours);
            let refused = connection.exchange().await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{length}: {refused}");
            assert!(connection.came.capacity() <= CHUNK);
        }
    }

    #[tokio::test]
    async fn a_request_has_its_length_its_number_and_its_kind() {
        let (ours, mut theirs) = duplex(64);
        let mut connection = Connection::new(ours);
        connection.push(7, &Request::sync("/"));
        poll_fn(|cx| connection.poll_send(cx)).await.unwrap();
        let mut sent = [0; 17];
        theirs.read_exact(&mut sent).await.unwrap();
        assert_eq!(&sent, b"\0\0\0\x0d\0\0\0\x07\0\0\0\x09\0\0\0\x01/");
    }
}
