//! A tiny HTTP server that answers as a test says, and notes what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// A request: its first line, and its header lines in lower case up to the colon.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

type Answer = dyn Fn(&Asked) -> (u16, String) + Send + Sync;

/// The server. Its thread ends with the process.
pub(crate) struct Counter {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Counter {
    pub(crate) fn start(answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> Self {
        Self::serve(None, answer)
    }

    /// One that gives this answer to everything.
    pub(crate) fn saying(status: u16, body: &str) -> Self {
        let body = body.to_owned();
        Self::start(move |_| (status, body.clone()))
    }

    pub(crate) fn serve(
        tls: Option<ServerConfig>,
        answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, tls) = (asked.clone(), tls.map(Arc::new));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
                // A client that goes, or does not trust us, is part of a test.
                let _ = serve_one(stream, tls.clone(), &noted, &answer);
            }
        });
        Self { address, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn https(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The one request that there was.
    pub(crate) fn only(&self) -> Asked {
        let asked = self.asked.lock().unwrap();
        let [only] = &asked[..] else { panic!("{asked:?}") };
        only.clone()
    }

    pub(crate) fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn serve_one(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    noted: &Mutex<Vec<Asked>>,
    answer: &Answer,
) -> std::io::Result<()> {
    match tls {
        None => exchange(stream, noted, answer),
        Some(config) => {
            let connection = ServerConnection::new(config).unwrap();
            exchange(StreamOwned::new(connection, stream), noted, answer)
        }
    }
}

fn exchange(
    stream: impl std::io::Read + Write,
    noted: &Mutex<Vec<Asked>>,
    answer: &Answer,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut asked = Asked::default();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end() {
            "" => break,
            first if asked.line.is_empty() => first.clone_into(&mut asked.line),
            header => {
                let (name, value) = header.split_once(':').unwrap();
                asked.headers.push(format!("{}:{value}", name.to_lowercase()));
            }
        }
    }
    noted.lock().unwrap().push(asked.clone());
    let (status, body) = answer(&asked);
    let kind = if status < 300 { "application/json" } else { "application/problem+json" };
    write!(
        stream.get_mut(),
        "HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.get_mut().flush()?;
    // Whoever closes before everything was read resets the connection, and the answer with it.
    stream.read_to_end(&mut Vec::new()).map(drop)
}

/// A server's side of TLS; with `client_ca` only clients with a certificate of it get in.
pub(crate) fn tls(cert: &Path, key: &Path, client_ca: Option<&Path>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certs = |path: &Path| -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap).collect()
    };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certs(path));
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    builder.with_single_cert(certs(cert), PrivateKeyDer::from_pem_file(key).unwrap()).unwrap()
}
