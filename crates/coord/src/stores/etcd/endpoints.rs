//! The members of a cluster: addresses, TLS and login.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};

use super::failure::Failure;
use crate::error::{Error, ErrorKind};
use crate::url::{PemFiles, Scheme, Secret, StoreUrl};

/// How often a connection that carries streams is probed. etcd closes a connection that is probed
/// more often than every 5 s.
const PROBE_EVERY: Duration = Duration::from_secs(10);

/// How to reach each member of a cluster.
pub(super) struct Endpoints {
    pub(super) url: StoreUrl,
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
            return Err(url.unusable("it is not an etcd URL"));
        }
        Ok(Self {
            url: url.clone(),
            tls: url.tls.then(|| tls_options(url)).transpose()?,
            login: url.login()?,
            login_ignored: AtomicBool::new(false),
        })
    }

    /// How many members are known.
    pub(super) fn count(&self) -> usize {
        self.url.hosts.len().max(1)
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
            Failure::Unanswered(why) | Failure::Undone(why)
                if self.url.tls && why.to_ascii_lowercase().contains("connection reset") =>
            {
                Failure::Undone(format!("{why}; does it speak TLS? etcd: is without"))
            }
            other => other,
        }
    }

    fn options(&self, index: usize, usage: Use) -> ConnectOptions {
        // A member without a leader answers with an error instead of waiting for one.
        let timeout = self.url.timeout();
        let mut options =
            ConnectOptions::new().with_require_leader(true).with_connect_timeout(timeout);
        if usage == Use::Streams {
            options = options
                .with_keep_alive(PROBE_EVERY, timeout)
                // etcd closes a connection that is probed while it carries nothing.
                .with_keep_alive_while_idle(false);
        }
        match (&self.tls, self.url.hosts.get(index)) {
            (Some(tls), Some((host, _))) => options.with_tls(tls.clone().domain_name(host)),
            _ => options,
        }
    }
}

fn tls_options(url: &StoreUrl) -> Result<TlsOptions, Error> {
    let PemFiles { authorities, identity } = url.pem_files()?;
    let options = match authorities {
        Some(pem) => TlsOptions::new().ca_certificate(Certificate::from_pem(pem)),
        None => TlsOptions::new().with_native_roots(),
    };
    Ok(match identity {
        Some((cert, key)) => options.identity(Identity::from_pem(cert, key)),
        None => options,
    })
}
