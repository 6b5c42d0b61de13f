//! The reason why nobody let us in. The client library only says that no host did, so after that each is
//! tried once more by hand.

use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::endpoints::Endpoints;
use crate::error::{ErrorKind, Failure, Reason};
use crate::url::PemFiles;

/// No host is tried for longer than this: a reason that takes longer is "no answer".
const PATIENCE: Duration = Duration::from_millis(500);

/// The reason, from the host that says most.
pub(super) async fn diagnose(endpoints: &Endpoints) -> Failure {
    let endpoints = endpoints.clone();
    let probe = move || {
        let reasons: Vec<_> =
            endpoints.hosts.iter().map(|host| reason(host, endpoints.tls.as_ref())).collect();
        let denied = reasons.iter().any(|(kind, _)| *kind == ErrorKind::Denied);
        let kind = if denied { ErrorKind::Denied } else { ErrorKind::Unavailable };
        let said = reasons.into_iter().filter(|(of, _)| *of == kind).map(|(_, why)| why);
        Failure::Definite(kind, all(said.collect()))
    };
    let lost = |_| Failure::unavailable("no host could be reached");
    tokio::task::spawn_blocking(probe).await.unwrap_or_else(lost)
}

/// What several hosts say, or the one that there is, with its cause.
fn all(mut reasons: Vec<Reason>) -> Reason {
    match reasons.len() {
        1 => reasons.remove(0),
        _ => reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").into(),
    }
}

fn reason(host: &(String, u16), tls: Option<&PemFiles>) -> (ErrorKind, Reason) {
    let (name, port) = host;
    let (kind, why) = match (connect(host), tls) {
        (Err(error), _) => (ErrorKind::Unavailable, Reason::new("no connection", error)),
        (Ok(_), None) => (
            ErrorKind::Unavailable,
            "the server closed the connection: it has no quorum, has too many connections, or \
             the port wants TLS (zks:)"
                .into(),
        ),
        (Ok(stream), Some(pem)) => match handshake(name, stream, pem) {
            Ok(()) => (
                ErrorKind::Unavailable,
                "TLS works, and the server closed the connection: it has no quorum, or has too \
                 many connections"
                    .into(),
            ),
            Err(error) => judge(error),
        },
    };
    (kind, why.after(format_args!("{name}:{port}:")))
}

fn connect(host: &(String, u16)) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (host.0.as_str(), host.1).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Agrees on TLS and waits for an objection: since TLS 1.3 a server objects to a client's
/// certificate only after the client is done.
fn handshake(name: &str, mut stream: TcpStream, pem: &PemFiles) -> io::Result<()> {
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let config = config(pem).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    match StreamOwned::new(connection, stream).read(&mut [0]) {
        Err(error) if error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>()) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

fn config(pem: &PemFiles) -> Result<ClientConfig, rustls::Error> {
    let general = |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
    let mut roots = RootCertStore::empty();
    let authorities = pem.authorities.as_deref().unwrap_or_default();
    for root in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        // What cannot be used is not trusted; the library does the same.
        let _ = roots.add(root.map_err(general)?);
    }
    let builder = ClientConfig::builder().with_root_certificates(roots);
    match &pem.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((cert, key)) => {
            let chain = CertificateDer::pem_slice_iter(cert.as_bytes());
            let chain = chain.collect::<Result<Vec<_>, _>>().map_err(general)?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(general)?;
            builder.with_client_auth_cert(chain, key)
        }
    }
}

fn judge(error: io::Error) -> (ErrorKind, Reason) {
    let (kind, why) = match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>())
    {
        Some(rustls::Error::InvalidCertificate(_)) => {
            (ErrorKind::Denied, "the server's certificate is not trusted")
        }
        Some(rustls::Error::AlertReceived(_)) => {
            (ErrorKind::Denied, "the server rejects us in TLS")
        }
        Some(_) => (ErrorKind::Unavailable, "no TLS there"),
        None => (ErrorKind::Unavailable, "no TLS there (is it a port for zk:?)"),
    };
    (kind, Reason::new(why, error))
}
