//! The endpoints: addresses, login, TLS, and time-outs.

use std::fs;
use std::time::Duration;

use rustls::crypto::ring;
use zookeeper_client as zk;

use crate::error::Error;
use crate::url::{PemFiles, StoreUrl};

/// How long a silent client stays present unless the URL says otherwise: the default time to live
/// of a worker.
const SESSION_DEFAULT: Duration = Duration::from_secs(30);

/// No connection is given up sooner than this for being silent: a busy server is not a dead one.
const SILENCE_MIN: Duration = Duration::from_millis(500);

/// Where systems keep the authorities they trust. The client library does not look for them.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Everything that it takes to connect.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    connector: zk::Connector,
    cluster: String,
    pub(super) hosts: Vec<(String, u16)>,
    /// With the authorities of the system if the URL names none.
    pub(super) tls: Option<PemFiles>,
    /// The session time-out to ask for.
    pub(super) session: Duration,
    /// Of a request, and of connecting.
    pub(super) timeout: Duration,
    /// Whether we say who we are.
    pub(super) authenticated: bool,
}

impl Endpoints {
    pub(super) fn new(url: &StoreUrl) -> Result<Self, Error> {
        let timeout = url.timeout();
        let session = url.session().unwrap_or(SESSION_DEFAULT);
        // Every host gets its turn within the time of one request.
        let hosts = u32::try_from(url.hosts.len()).unwrap_or(u32::MAX).max(1);
        let silence = (timeout / hosts).max(SILENCE_MIN);
        let mut connector = zk::Client::connector()
            .with_session_timeout(session)
            .with_connection_timeout(silence)
            .with_fail_eagerly()
            // Presence ends by release or by time, never because a client was replaced.
            .with_detached();
        let login = url.login()?;
        if let Some((user, password)) = &login {
            let login = format!("{user}:{}", password.reveal());
            connector = connector.with_auth("digest", login.as_bytes());
        }
        let tls = url.tls.then(|| pem_files(url)).transpose()?;
        if let Some(pem) = &tls {
            connector = connector.with_tls(options(pem).map_err(|error| url.unusable(error))?);
        }
        Ok(Self {
            connector,
            cluster: url.addresses().collect::<Vec<_>>().join(","),
            hosts: url.hosts.clone(),
            tls,
            session,
            timeout,
            authenticated: login.is_some(),
        })
    }

    /// Tries every host once: a new session, or one more connection of a session that there is.
    pub(super) async fn open(
        &self,
        session: Option<zk::SessionInfo>,
    ) -> Result<zk::Client, zk::Error> {
        let mut connector = self.connector.clone();
        if let Some(session) = session {
            connector = connector.with_session(session);
        }
        match self.tls {
            Some(_) => connector.secure_connect(&self.cluster).await,
            None => connector.connect(&self.cluster).await,
        }
    }
}

fn pem_files(url: &StoreUrl) -> Result<PemFiles, Error> {
    // Fails if there is a default already, which is as good.
    let _ = ring::default_provider().install_default();
    let mut files = url.pem_files()?;
    if files.authorities.is_none() {
        files.authorities =
            SYSTEM_AUTHORITIES.iter().find_map(|path| fs::read_to_string(path).ok());
    }
    match files.authorities {
        Some(_) => Ok(files),
        None => Err(url.unusable("this system has no list of authorities: give ca")),
    }
}

fn options(pem: &PemFiles) -> Result<zk::TlsOptions, zk::Error> {
    let authorities = pem.authorities.as_deref().unwrap_or_default();
    let options = zk::TlsOptions::new().with_pem_ca(authorities)?;
    match &pem.identity {
        Some((cert, key)) => options.with_pem_identity(cert, key),
        None => Ok(options),
    }
}
