//! How to get in: addresses, login, TLS, and how long things may take.

use std::fs;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use zookeeper_client as zk;

use crate::error::{Error, ErrorKind};
use crate::url::StoreUrl;

/// How long a silent client stays present unless the URL says otherwise: the default time to live
/// of a worker.
const SESSION_DEFAULT: Duration = Duration::from_secs(30);

/// No connection is given up sooner than this for being silent: a busy server is not a dead one.
const SILENCE_MIN: Duration = Duration::from_millis(500);

/// Where systems keep the authorities they trust. The client library does not look for them.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

const NO_PASSWORD: &str = "the user has no password: write zk://USER:PASSWORD@host, name a file \
                           with ?password_file=, or set FRAZIL_STORE_PASSWORD";
const NO_USER: &str = "the password has no user: write zk://USER@host, or unset \
                       FRAZIL_STORE_PASSWORD";

/// Everything that it takes to connect.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    connector: zk::Connector,
    cluster: String,
    pub(super) hosts: Vec<(String, u16)>,
    pub(super) tls: Option<Pem>,
    /// The session time-out to ask for.
    pub(super) session: Duration,
    /// Of a request, and of connecting.
    pub(super) timeout: Duration,
    /// Whether we say who we are.
    pub(super) authenticated: bool,
}

/// The texts of the files that TLS takes.
#[derive(Clone)]
pub(super) struct Pem {
    pub(super) authorities: String,
    /// Certificate and key.
    pub(super) identity: Option<(String, String)>,
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
        let login = login(url)?;
        if let Some(login) = &login {
            connector = connector.with_auth("digest", login.as_bytes());
        }
        let tls = url.tls.then(|| Pem::read(url)).transpose()?;
        if let Some(pem) = &tls {
            connector = connector.with_tls(pem.options().map_err(|error| invalid(url, error))?);
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

fn login(url: &StoreUrl) -> Result<Option<String>, Error> {
    match (&url.user, url.secret()?) {
        (None, None) => Ok(None),
        (Some(user), Some(password)) => Ok(Some(format!("{user}:{}", password.reveal()))),
        (Some(_), None) => Err(invalid(url, NO_PASSWORD)),
        (None, Some(_)) => Err(invalid(url, NO_USER)),
    }
}

impl Pem {
    fn read(url: &StoreUrl) -> Result<Self, Error> {
        // Fails if there is a default already, which is as good.
        let _ = aws_lc_rs::default_provider().install_default();
        let authorities = match url.option("ca") {
            Some(path) => read(url, "ca", path)?,
            None => SYSTEM_AUTHORITIES
                .iter()
                .find_map(|path| fs::read_to_string(path).ok())
                .ok_or_else(|| invalid(url, "this system has no list of authorities: give ca"))?,
        };
        let identity = match (url.option("cert"), url.option("key")) {
            (Some(cert), Some(key)) => Some((read(url, "cert", cert)?, read(url, "key", key)?)),
            _ => None,
        };
        Ok(Self { authorities, identity })
    }

    fn options(&self) -> Result<zk::TlsOptions, zk::Error> {
        let mut options = zk::TlsOptions::new().with_pem_ca(&self.authorities)?;
        if let Some((cert, key)) = &self.identity {
            options = options.with_pem_identity(cert, key)?;
        }
        Ok(options)
    }
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pem")
    }
}

fn read(url: &StoreUrl, option: &str, path: &str) -> Result<String, Error> {
    let unreadable =
        |error| invalid(url, format_args!("{option} {path:?} cannot be read: {error}"));
    fs::read_to_string(path).map_err(unreadable)
}

fn invalid(url: &StoreUrl, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidConfig, "connect", url, why)
}
