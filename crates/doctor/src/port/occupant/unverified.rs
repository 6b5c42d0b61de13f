//! A question over TLS to somebody whose certificate is not checked. Nothing secret is sent and nothing
//! depends on the answer, so that anybody may give it; frazil-client trusts nobody like this.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

use super::PATIENCE;

/// Bytes of an answer: what a server says of itself has a few thousand.
const ANSWER_BYTES_MAX: u64 = 1 << 16;

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// What a server says of itself.
pub(crate) fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = shake_hands(address)?;
    // HTTP/1.0 has neither chunks nor connections that stay.
    write!(stream, "GET /v1/info HTTP/1.0\r\nhost: {address}\r\n\r\n")?;
    let mut answer = Vec::new();
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer) {
        // Who closes without a last word in TLS has said what there was to say.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
}

/// A connection to whoever is there.
pub(crate) fn shake_hands(address: SocketAddr) -> io::Result<Stream> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    let name = ServerName::from(address.ip());
    let mut tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    tls.complete_io(&mut stream)?;
    Ok(StreamOwned::new(tls, stream))
}

/// Takes everybody for who they say they are.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
