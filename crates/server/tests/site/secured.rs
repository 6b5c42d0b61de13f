//! Keys and TLS for tests.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frazil_rig::Certificates;
use frazil_server::TlsFiles;
use frazil_server::keys::{KeyEntry, NewKey, Role};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection of any kind.
pub(crate) trait Line: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Line for T {}

/// How clients and servers are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
    MutualTls,
}

impl Transport {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Tls, Self::MutualTls];

    /// What the server is told.
    pub(crate) fn files(self, certificates: &Certificates) -> Option<TlsFiles> {
        (self != Self::Plain).then(|| {
            TlsFiles::new(
                certificates.server_cert().to_owned(),
                certificates.server_key().to_owned(),
            )
            .with_client_ca((self == Self::MutualTls).then(|| certificates.ca().to_owned()))
        })
    }

    /// A connection of a client that has what it needs.
    pub(crate) async fn connect(
        self,
        address: SocketAddr,
        certificates: &Certificates,
        alpn: &[u8],
    ) -> Box<dyn Line> {
        let stream = TcpStream::connect(address).await.unwrap();
        if self == Self::Plain {
            return Box::new(stream);
        }
        let own = (certificates.client_cert(), certificates.client_key());
        let own = (self == Self::MutualTls).then_some(own);
        let config = client(certificates.ca(), own, alpn);
        let name = ServerName::try_from("localhost").unwrap();
        Box::new(TlsConnector::from(config).connect(name, stream).await.unwrap())
    }
}

/// What a client trusts and shows.
pub(crate) fn client(ca: &Path, own: Option<(&Path, &Path)>, alpn: &[u8]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let chain = CertificateDer::pem_file_iter(cert).unwrap().map(Result::unwrap).collect();
            builder
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap())
                .unwrap()
        }
    };
    if !alpn.is_empty() {
        config.alpn_protocols = vec![alpn.to_vec()];
    }
    Arc::new(config)
}

/// A file of keys.
pub(crate) struct Keys {
    directory: tempfile::TempDir,
    entries: Vec<KeyEntry>,
}

impl Keys {
    /// A file without keys.
    pub(crate) fn new() -> Self {
        let keys = Self { directory: tempfile::tempdir().unwrap(), entries: Vec::new() };
        keys.write();
        keys
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("keys.toml")
    }

    /// Adds a key and gives its text.
    pub(crate) fn add(&mut self, name: &str, role: Role) -> String {
        self.add_with(name, role, |_| {})
    }

    /// The same, changed.
    pub(crate) fn add_with(
        &mut self,
        name: &str,
        role: Role,
        change: impl FnOnce(&mut KeyEntry),
    ) -> String {
        let key = NewKey::mint().unwrap();
        let mut entry = KeyEntry::of(&key, name, vec![role]);
        change(&mut entry);
        self.entries.push(entry);
        self.write();
        key.text().to_owned()
    }

    /// Removes the keys of a name.
    pub(crate) fn revoke(&mut self, name: &str) {
        self.entries.retain(|entry| entry.name != name);
        self.write();
    }

    /// Changes the key of a name.
    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut KeyEntry)) {
        let entry = self.entries.iter_mut().find(|entry| entry.name == name);
        change(entry.unwrap());
        self.write();
    }

    fn write(&self) {
        let text: String = self.entries.iter().map(text_of).collect();
        std::fs::write(self.path(), text).unwrap();
    }
}

/// An entry as a list of keys has it.
pub(crate) fn text_of(entry: &KeyEntry) -> String {
    let mut text = "[[key]]\n".to_owned();
    // Every JSON value of these is one of TOML too.
    for (name, value) in serde_json::to_value(entry).unwrap().as_object().unwrap() {
        text += &format!("{name} = {value}\n");
    }
    text
}
