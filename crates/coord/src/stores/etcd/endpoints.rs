//! The members of a cluster: addresses, TLS and login.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};

use super::failure::Failure;
use crate::error::{Error, ErrorKind};
use crate::url::{Scheme, Secret, StoreUrl};

/// How often a connection that carries streams is probed. etcd closes a connection that is probed
/// more often than every 5 s.
const PROBE_EVERY: Duration = Duration::from_secs(10);

const NO_PASSWORD: &str = "the user has no password: write etcd://USER:PASSWORD@host, name a file \
                           with ?password_file=, or set FRAZIL_STORE_PASSWORD";
const NO_USER: &str = "the password has no user: write etcd://USER@host, or unset \
                       FRAZIL_STORE_PASSWORD";

/// How to reach each member of a cluster.
pub(super) struct Endpoints {
    url: StoreUrl,
    tls: Option<TlsOptions>,
    login: Option<(String, Secret)>,
    /// The server asked for no login although there is one.
    login_ignored: AtomicBool,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Each request has a time limit of its own.
    Requests,
    /// A stream has no limit; a dead connection is noticed by probing it.
    Streams,
}

impl Endpoints {
    pub(super) fn new(url: &StoreUrl) -> Result<Self, Error> {
        if url.scheme != Scheme::Etcd {
            return Err(unusable(url, "it is not an etcd URL"));
        }
        let tls = if url.tls { Some(tls_options(url)?) } else { None };
        let login = match (url.user.clone(), url.secret()?) {
            (Some(user), Some(password)) => Some((user, password)),
            (None, None) => None,
            (Some(_), None) => return Err(unusable(url, NO_PASSWORD)),
            (None, Some(_)) => return Err(unusable(url, NO_USER)),
        };
        Ok(Self { url: url.clone(), tls, login, login_ignored: AtomicBool::new(false) })
    }

    /// How many members are known.
    pub(super) fn count(&self) -> usize {
        self.url.hosts.len().max(1)
    }

    /// Where each of them is.
    pub(super) fn addresses(&self) -> impl Iterator<Item = String> {
        self.url.addresses()
    }

    /// Whether connections are encrypted.
    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// How long a request may take.
    pub(super) fn timeout(&self) -> Duration {
        self.url.timeout()
    }

    /// Whether the server asked for no login although there is one.
    pub(super) fn is_login_ignored(&self) -> bool {
        // Nothing else is published along with it.
        self.login_ignored.load(Ordering::Relaxed)
    }

    /// Prepares a connection to one member, and logs in. Without a login nothing is sent yet.
    pub(super) async fn open(&self, index: usize, usage: Use) -> Result<Client, Failure> {
        let Some(address) = self.url.addresses().nth(index) else {
            return Err(Failure::Refused(ErrorKind::InvalidConfig, "no such member".into()));
        };
        let options = self.options(index, usage);
        let Some((user, password)) = &self.login else {
            return Ok(Client::connect([address], Some(options)).await?);
        };
        let with_login = options.clone().with_user(user, password.reveal());
        match Client::connect([&address], Some(with_login)).await {
            Err(error) if Failure::is_auth_disabled(&error) => {
                self.login_ignored.store(true, Ordering::Relaxed);
                Ok(Client::connect([address], Some(options)).await?)
            }
            opened => Ok(opened?),
        }
    }

    /// Adds what may be wrong with the URL to a connection that was broken off at its start.
    pub(super) fn hint(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Unanswered(why) if !self.url.tls => {
                Failure::Unanswered(format!("{why}; if the server wants TLS, write etcds:"))
            }
            // Whether the end of a handshake that is not understood arrives as such is a race.
            Failure::Unanswered(why) if self.is_tls() && is_reset(&why) => {
                Failure::Unanswered(speaks_tls(&why))
            }
            Failure::Undone(why) if self.is_tls() && is_reset(&why) => {
                Failure::Undone(speaks_tls(&why))
            }
            other => other,
        }
    }

    fn options(&self, index: usize, usage: Use) -> ConnectOptions {
        // A member without a leader answers with an error instead of waiting for one.
        let mut options =
            ConnectOptions::new().with_require_leader(true).with_connect_timeout(self.timeout());
        if usage == Use::Streams {
            options = options
                .with_keep_alive(PROBE_EVERY, self.timeout())
                // etcd closes a connection that is probed while it carries nothing.
                .with_keep_alive_while_idle(false);
        }
        match (&self.tls, self.url.hosts.get(index)) {
            (Some(tls), Some((host, _))) => options.with_tls(tls.clone().domain_name(host)),
            _ => options,
        }
    }
}

fn is_reset(why: &str) -> bool {
    why.to_ascii_lowercase().contains("connection reset")
}

fn speaks_tls(why: &str) -> String {
    format!("{why}; does it speak TLS? etcd: is without")
}

fn tls_options(url: &StoreUrl) -> Result<TlsOptions, Error> {
    let options = match url.option("ca") {
        Some(path) => {
            let pem = read(url, "ca", path)?;
            if !pem.contains("-----BEGIN CERTIFICATE-----") {
                return Err(unusable(url, format_args!("ca {path:?} has no certificate in PEM")));
            }
            TlsOptions::new().ca_certificate(Certificate::from_pem(pem))
        }
        None => TlsOptions::new().with_native_roots(),
    };
    match (url.option("cert"), url.option("key")) {
        (Some(cert), Some(key)) => {
            let identity = Identity::from_pem(read(url, "cert", cert)?, read(url, "key", key)?);
            Ok(options.identity(identity))
        }
        _ => Ok(options),
    }
}

fn read(url: &StoreUrl, option: &str, path: &str) -> Result<String, Error> {
    fs::read_to_string(path)
        .map_err(|error| unusable(url, format_args!("{option} {path:?} cannot be read: {error}")))
}

fn unusable(url: &StoreUrl, why: impl fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidConfig, "connect", url, why)
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.url, f)
    }
}
