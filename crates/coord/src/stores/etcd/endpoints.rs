//! The members of a cluster: addresses, TLS and login.

use std::time::Duration;

use frazil_etcd::{Certificate, Client, ClientTlsConfig, Config, Identity, Login, Ping};

use super::failure::Failure;
use crate::error::{Error, ErrorKind};
use crate::url::{PemFiles, Scheme, StoreUrl};

/// How often a connection that carries streams is probed.
const PROBE_EVERY: Duration = Duration::from_secs(10);

/// The largest answer that is taken: the records of 65,536 workers at 1 KiB each.
const ANSWER_MAX: usize = 64 << 20;

/// How to reach each member of a cluster.
pub(super) struct Endpoints {
    pub(super) url: StoreUrl,
    /// Of a connection for requests, but for the name in a certificate.
    config: Config,
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
        let login = url
            .login()?
            .map(|(user, password)| Login { user, password: password.reveal().to_owned() });
        let mut config = Config::default();
        config.connect_timeout = url.timeout();
        config.tls = url.tls.then(|| tls_config(url)).transpose()?;
        config.login = login;
        config.answer_max = ANSWER_MAX;
        Ok(Self { url: url.clone(), config })
    }

    /// How many members are known.
    pub(super) fn count(&self) -> usize {
        self.url.hosts.len().max(1)
    }

    /// Prepares a connection to one member. Nothing is sent yet.
    pub(super) fn open(&self, index: usize, usage: Use) -> Result<Client, Failure> {
        let Some(address) = self.url.addresses().nth(index) else {
            return Err(Failure::Refused(ErrorKind::InvalidConfig, "no such member".into()));
        };
        let mut config = self.config.clone();
        if usage == Use::Streams {
            config.ping = Some(Ping { every: PROBE_EVERY, timeout: self.url.timeout() });
        }
        if let Some((host, _)) = self.url.hosts.get(index) {
            config.tls = config.tls.map(|tls| tls.domain_name(host));
        }
        Ok(Client::new(&address, &config)?)
    }

    /// Adds what may be wrong with the URL to a connection that was broken off at its start.
    pub(super) fn hint(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Unanswered(why) if !self.url.tls => {
                Failure::Unanswered(why.after("if the server wants TLS, write etcds://"))
            }
            // Whether the end of a handshake that is not understood arrives as such is a race.
            Failure::Unanswered(why) | Failure::Undone(why)
                if self.url.tls
                    && why.to_string().to_ascii_lowercase().contains("connection reset") =>
            {
                Failure::Undone(why.after("does it speak TLS? etcd:// is without"))
            }
            other => other,
        }
    }
}

fn tls_config(url: &StoreUrl) -> Result<ClientTlsConfig, Error> {
    let PemFiles { authorities, identity } = url.pem_files()?;
    let config = match authorities {
        Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    Ok(match identity {
        Some((cert, key)) => config.identity(Identity::from_pem(cert, key)),
        None => config,
    })
}
