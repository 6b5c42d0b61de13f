//! Certificates for the listeners.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use frazil::coord::internal::write_causes;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::{Limits, TlsFiles};

/// The first byte of every TLS connection: a record with a handshake.
pub(crate) const HANDSHAKE: u8 = 0x16;

/// What speaks behind TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsProtocol {
    Http,
    Grpc,
    Resp,
}

/// The certificate in force, for each protocol.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    current: ArcSwap<[Arc<ServerConfig>; 3]>,
}

/// Why a connection did not become one.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The client speaks plainly.
    Plain(TcpStream),
    /// It broke off, took too long or showed no certificate that is trusted.
    Failed(io::Error),
}

/// What is wrong with the files of a certificate.
#[derive(Clone, Debug)]
pub struct TlsError {
    message: String,
    cause: Arc<dyn std::error::Error + Send + Sync>,
}

impl Tls {
    pub(crate) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(configs(&files)?);
        Ok(Self { files, current })
    }

    /// Reads the files again; what is wrong with them changes nothing.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(configs(&self.files)?));
        Ok(())
    }

    /// Whether clients are asked for certificates.
    pub(crate) const fn asks_for_certificates(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// Agrees on keys with a client.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        protocol: TlsProtocol,
        limits: &Limits,
    ) -> Result<TlsStream<TcpStream>, HandshakeError> {
        let shaking = async {
            let mut first = [0];
            let seen = stream.peek(&mut first).await;
            if matches!(seen, Ok(1)) && first[0] != HANDSHAKE {
                return Err(HandshakeError::Plain(stream));
            }
            let config = self.current.load()[protocol as usize].clone();
            TlsAcceptor::from(config).accept(stream).await.map_err(HandshakeError::Failed)
        };
        let in_time = tokio::time::timeout(limits.handshake_timeout, shaking).await;
        in_time.unwrap_or_else(|_| Err(HandshakeError::Failed(ErrorKind::TimedOut.into())))
    }
}

impl TlsFiles {
    /// Whether a server could use them: they can be read, and belong together. Whether the
    /// certificate has expired is not looked at.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), TlsError> {
        config(self).map(drop)
    }
}

/// One configuration for each [`TlsProtocol`], in its order.
fn configs(files: &TlsFiles) -> Result<[Arc<ServerConfig>; 3], TlsError> {
    let plain = config(files)?;
    let speaking = |protocols: &[&[u8]]| {
        let mut config = plain.clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    };
    Ok([speaking(&[b"http/1.1"]), speaking(&[b"h2"]), speaking(&[])])
}

fn config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let certs = certificates(&files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unreadable("the private key", &files.key, error))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::new("TLS cannot be spoken".into(), error))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => builder.with_client_cert_verifier(verifier(ca, provider)?),
    };
    builder.with_single_cert(certs, key).map_err(|error| {
        let (cert, key) = (files.cert.display(), files.key.display());
        TlsError::new(format!("{cert} and {key} do not go together"), error)
    })
}

fn verifier(
    ca: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca)? {
        roots
            .add(certificate)
            .map_err(|error| unreadable("an authority's certificate", ca, error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unreadable("the authorities", ca, error))
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| unreadable("certificates", path, error))?;
    if certificates.is_empty() {
        return Err(unreadable("certificates", path, "there are none, as PEM"));
    }
    Ok(certificates)
}

fn unreadable(
    what: &str,
    path: &Path,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> TlsError {
    TlsError::new(format!("{}: {what} cannot be read", path.display()), why)
}

impl TlsError {
    fn new(message: String, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { message, cause: Arc::from(cause.into()) }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if f.alternate() { write_causes(f, self) } else { Ok(()) }
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}
