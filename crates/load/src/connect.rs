//! Connections, plain or behind TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::fault::Fault;
use crate::plan::Plan;

/// A connection to the server.
#[derive(Debug)]
pub(crate) enum Io {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Io {
    /// Connects as the plan says; `alpn` is the protocol that TLS agrees on, if any.
    pub(crate) async fn connect(plan: &Plan, alpn: Option<&[u8]>) -> Result<Self, Fault> {
        tokio::time::timeout(plan.timeout, Self::open(plan, alpn))
            .await
            .unwrap_or_else(|_| Err(Fault::Unreachable("it does not answer in time".to_owned())))
    }

    async fn open(plan: &Plan, alpn: Option<&[u8]>) -> Result<Self, Fault> {
        let place = (plan.address.host.as_str(), plan.address.port);
        let stream = TcpStream::connect(place).await.map_err(Fault::unreachable)?;
        stream.set_nodelay(true).map_err(Fault::unreachable)?;
        let Some(tls) = &plan.tls else { return Ok(Self::Plain(stream)) };
        let name = ServerName::try_from(plan.address.host.clone())
            .map_err(|_| Fault::Untrusted("no certificate can have that name".to_owned()))?;
        let mut config = (**tls).clone();
        config.alpn_protocols = alpn.map(<[u8]>::to_vec).into_iter().collect();
        let secured = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        Ok(Self::Secure(Box::new(secured.map_err(refused)?)))
    }
}

/// Why TLS did not come about.
fn refused(error: io::Error) -> Fault {
    match error.get_ref().and_then(|why| why.downcast_ref::<rustls::Error>()) {
        // What came is no record of TLS at all.
        Some(rustls::Error::InvalidMessage(why)) => Fault::NotTls(format!("{why:?}")),
        Some(why) => Fault::Untrusted(why.to_string()),
        None => Fault::NotTls(error.to_string()),
    }
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Secure(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secure(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Secure(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
