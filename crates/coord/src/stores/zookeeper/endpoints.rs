//! The endpoints: addresses, login, TLS, and time-outs.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use frazil_zookeeper as zk;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::error::Error;
use crate::url::{PemFiles, StoreUrl};

/// How long a silent client stays present unless the URL says otherwise: the default time to live
/// of a worker.
const SESSION_DEFAULT: Duration = Duration::from_secs(30);

/// No connection is given up sooner than this for being silent: a busy server is not a dead one.
const SILENCE_MIN: Duration = Duration::from_millis(500);

/// Where systems keep the authorities they trust. rustls does not look for them.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Everything that it takes to connect.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    config: zk::Config,
    /// Of a request, and of connecting.
    pub(super) timeout: Duration,
}

impl Endpoints {
    pub(super) fn new(url: &StoreUrl) -> Result<Self, Error> {
        let timeout = url.timeout();
        // Every host gets its turn within the time of one request.
        let hosts = u32::try_from(url.hosts.len()).unwrap_or(u32::MAX).max(1);
        let mut config = zk::Config::new(&url.hosts[..]);
        config.session_timeout = url.session().unwrap_or(SESSION_DEFAULT);
        config.silence_max = (timeout / hosts).max(SILENCE_MIN);
        // Presence ends by release or by time, never because a client was replaced.
        config.detached = true;
        config.login = url.login()?.map(|(user, password)| {
            let password = password.reveal().to_owned();
            zk::Login { user, password }
        });
        config.tls = url.tls.then(|| tls(url)).transpose()?;
        Ok(Self { config, timeout })
    }

    /// Tries every host once: a new session, or one more connection of a session that there is.
    pub(super) async fn open(&self, session: Option<zk::Session>) -> Result<zk::Client, zk::Error> {
        let mut config = self.config.clone();
        config.session = session;
        zk::Client::connect(&config).await
    }

    /// The session time-out to ask for.
    pub(super) const fn session(&self) -> Duration {
        self.config.session_timeout
    }

    /// Whether we say who we are.
    pub(super) const fn is_authenticated(&self) -> bool {
        self.config.login.is_some()
    }

    pub(super) const fn is_encrypted(&self) -> bool {
        self.config.tls.is_some()
    }
}

fn tls(url: &StoreUrl) -> Result<Arc<ClientConfig>, Error> {
    // Fails if there is a default already, which is as good.
    let _ = ring::default_provider().install_default();
    let mut files = url.pem_files()?;
    if files.authorities.is_none() {
        files.authorities =
            SYSTEM_AUTHORITIES.iter().find_map(|path| fs::read_to_string(path).ok());
    }
    match &files.authorities {
        Some(authorities) => {
            let config = client_config(authorities, &files).map_err(|error| {
                url.unusable("the files for TLS cannot be used").with_source(error)
            })?;
            Ok(Arc::new(config))
        }
        None => Err(url.unusable("this system has no list of authorities: give ca")),
    }
}

fn client_config(authorities: &str, files: &PemFiles) -> Result<ClientConfig, rustls::Error> {
    let general = |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        // What cannot be used is not trusted.
        let _ = roots.add(root.map_err(general)?);
    }
    let builder = ClientConfig::builder().with_root_certificates(roots);
    match &files.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((cert, key)) => {
            let chain = CertificateDer::pem_slice_iter(cert.as_bytes());
            let chain = chain.collect::<Result<Vec<_>, _>>().map_err(general)?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(general)?;
            builder.with_client_auth_cert(chain, key)
        }
    }
}
