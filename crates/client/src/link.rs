//! A connection to a server, plain or behind TLS.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::endpoint::Endpoint;
use crate::tls::Trust;

/// Bytes both ways.
pub(crate) type Stream = Box<dyn Duplex>;

/// What both kinds of connections are.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// Connects to an endpoint.
pub(crate) async fn open(endpoint: &Endpoint, trust: Option<&Trust>) -> io::Result<Stream> {
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
    stream.set_nodelay(true)?;
    if !endpoint.is_secure {
        return Ok(Box::new(stream));
    }
    match trust {
        Some(trust) => trust.wrap(endpoint, stream).await,
        None => Err(io::Error::other("nobody is trusted")),
    }
}
