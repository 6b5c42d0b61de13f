//! The certificates to trust, and our own.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::builder::Identity;
use crate::endpoint::{Endpoint, Protocol};
use crate::error::Error;
use crate::link::Stream;

/// How to open TLS connections, for both protocols.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    http: Arc<ClientConfig>,
    grpc: Arc<ClientConfig>,
}

impl Trust {
    /// Trusts the authorities of a file, or else those of the machine, and shows who we are if that
    /// is asked for.
    pub(crate) fn new(ca: Option<&Path>, identity: Option<&Identity>) -> Result<Self, Error> {
        let roots = ca.map_or_else(machine_roots, file_roots)?;
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::invalid)?
            .with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.read()?;
                config.with_client_auth_cert(chain, key).map_err(|error| identity.bad(error))?
            }
        };
        let speaking = |protocol: &[u8]| {
            let mut config = config.clone();
            config.alpn_protocols = vec![protocol.to_vec()];
            Arc::new(config)
        };
        Ok(Self { http: speaking(b"http/1.1"), grpc: speaking(b"h2") })
    }

    pub(crate) async fn wrap(&self, endpoint: &Endpoint, stream: TcpStream) -> io::Result<Stream> {
        let name = ServerName::try_from(endpoint.host.clone()).map_err(io::Error::other)?;
        let config = match endpoint.protocol {
            Protocol::Http => &self.http,
            Protocol::Grpc => &self.grpc,
        };
        Ok(Box::new(TlsConnector::from(config.clone()).connect(name, stream).await?))
    }
}

impl Identity {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
        let chain = CertificateDer::pem_file_iter(&self.cert).and_then(Iterator::collect);
        let chain: Vec<_> = chain.map_err(|error| self.bad(error))?;
        if chain.is_empty() {
            return Err(self.bad("there is no certificate in PEM form"));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| self.bad(error))?;
        Ok((chain, key))
    }

    fn bad(&self, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        let (cert, key) = (self.cert.display(), self.key.display());
        Error::invalid(format_args!("the certificate {cert} with the key {key} is of no use"))
            .because(why)
    }
}

fn file_roots(path: &Path) -> Result<RootCertStore, Error> {
    let bad = |why: Box<dyn std::error::Error + Send + Sync>| {
        Error::invalid(format_args!("the authorities in {} are of no use", path.display()))
            .because(why)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad(error.into()))? {
        roots
            .add(certificate.map_err(|error| bad(error.into()))?)
            .map_err(|error| bad(error.into()))?;
    }
    if roots.is_empty() {
        return Err(bad("it has no certificate in PEM form".into()));
    }
    Ok(roots)
}

fn machine_roots() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err(Error::invalid("this machine trusts no authority: name one with ca()"));
    }
    Ok(roots)
}
