//! A connection to another node, plain or behind TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Uri;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::PeersError;
use crate::config::TlsFiles;
use crate::tls;

/// Connects to where a URL leads.
pub(super) async fn connect(
    uri: &Uri,
    tls: Option<&Arc<ClientConfig>>,
) -> io::Result<SendRequest<Empty<Bytes>>> {
    let no_host = || io::Error::other("the address has no host");
    let host = uri.host().ok_or_else(no_host)?.trim_matches(['[', ']']);
    let is_secure = uri.scheme_str() == Some("https");
    if !is_secure && tls.is_some() {
        // The key is not shown in the clear to whoever the store names.
        return Err(io::Error::other("the address is not https, and --peer-ca asks for TLS"));
    }
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    if !is_secure {
        return begin(stream).await;
    }
    let Some(tls) = tls else {
        return Err(io::Error::other("no authority is trusted: name one with --peer-ca"));
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    begin(TlsConnector::from(tls.clone()).connect(name, stream).await?).await
}

async fn begin(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> io::Result<SendRequest<Empty<Bytes>>> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends when the sender is dropped, or the other side closes.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// Whom to trust; and the node's own certificate, where it has one, to be shown to nodes that ask
/// for one. `None`: no authority is named.
pub(super) fn client_config(
    ca: Option<&Path>,
    own: Option<&TlsFiles>,
) -> Result<Option<Arc<ClientConfig>>, PeersError> {
    let Some(ca) = ca else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for certificate in tls::certificates(ca).map_err(PeersError::new)? {
        roots.add(certificate).map_err(|error| {
            PeersError::new(format_args!("{} is no authority: {error}", ca.display()))
        })?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(PeersError::new)?
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = tls::certificates(&own.cert).map_err(PeersError::new)?;
            let key = PrivateKeyDer::from_pem_file(&own.key).map_err(|error| {
                PeersError::new(format_args!("{} cannot be read: {error}", own.key.display()))
            })?;
            builder.with_client_auth_cert(chain, key).map_err(PeersError::new)?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(Arc::new(config)))
}
