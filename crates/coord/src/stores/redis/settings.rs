//! The settings in the URL, checked.

use std::time::Duration;

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, TlsCertificates,
};

use crate::error::Error;
use crate::url::{PemFiles, Scheme, Secret, StoreUrl, duration};

/// How long an old master may go on acknowledging after its successor was promoted, unless the URL
/// says otherwise: the default of a cluster's `cluster-node-timeout`, and more than Sentinel's usual
/// `min-replicas-max-lag` of 10 s.
const ISOLATION_DEFAULT: Duration = Duration::from_secs(15);
/// A longer isolation would block new workers for longer than any window.
const ISOLATION_MAX: Duration = Duration::from_secs(3600);
/// More replicas than anybody has: a typing error.
const REPLICAS_MAX: u32 = 64;
/// It is part of every key.
const PREFIX_MAX: usize = 64;

/// The lone word in front of the host may also be a password whose colon was forgotten.
const NO_PASSWORD: &str = "the user has no password: write redis://USER:PASSWORD@host, or \
                           redis://:PASSWORD@host without a user, or name a file with \
                           ?password_file=, or set FRAZIL_STORE_PASSWORD";

/// How to get in, and how to behave there.
pub(super) struct Settings {
    pub(super) url: StoreUrl,
    pub(super) prefix: String,
    pub(super) timeout: Duration,
    pub(super) isolation: Duration,
    pub(super) durability: Durability,
    pub(super) secret: Option<Secret>,
    certificates: TlsCertificates,
}

/// How many replicas must have a write before it counts as acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// None.
    Async,
    /// This many.
    Wait(u32),
}

/// A host and a port.
pub(super) type Address = (String, u16);

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Login {
    /// With the user and the password of the URL, into its database.
    Own,
    /// Without: most sentinels have no users.
    Nobody,
}

impl Settings {
    pub(super) fn of(url: &StoreUrl) -> Result<Self, Error> {
        let bad = |why: String| url.unusable(why);
        if !url.scheme.is_redis() || url.hosts.is_empty() {
            return Err(bad("this is not the URL of a Redis store".into()));
        }
        if url.scheme == Scheme::Redis && url.hosts.len() > 1 {
            let other = "for several use redis+sentinel: or redis+cluster:";
            return Err(bad(format!("redis: takes one host; {other}")));
        }
        let secret = url.secret()?;
        if url.user.is_some() && secret.is_none() {
            return Err(bad(NO_PASSWORD.into()));
        }
        // Redis is not asked for rustls's default elsewhere; whoever installed one first is right.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            prefix: prefix(url).map_err(&bad)?,
            timeout: url.timeout(),
            isolation: isolation(url).map_err(&bad)?,
            durability: durability(url).map_err(&bad)?,
            secret,
            certificates: certificates(url)?,
            url: url.clone(),
        })
    }

    /// A client of one server.
    pub(super) fn client(&self, address: &Address, login: Login) -> Result<Client, Error> {
        let bad = |why: redis::RedisError| {
            self.url.unusable("no client can be made").with_source(self.redacted(&why))
        };
        let mut settings = RedisConnectionInfo::default()
            // Version 3 tells at once when the connection is lost, and brings announcements.
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name();
        if login == Login::Own {
            if let Some(user) = &self.url.user {
                settings = settings.set_username(user);
            }
            if let Some(secret) = &self.secret {
                settings = settings.set_password(secret.reveal());
            }
            if self.url.scheme == Scheme::Redis {
                settings = settings.set_db(self.url.path.parse().unwrap_or(0));
            }
        }
        let (host, port) = address.clone();
        let place = match self.url.tls {
            false => ConnectionAddr::Tcp(host, port),
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        };
        let info = place.into_connection_info().map_err(bad)?.set_redis_settings(settings);
        match self.url.tls {
            false => Client::open(info).map_err(bad),
            true => Client::build_with_tls(info, self.certificates.clone()).map_err(bad),
        }
    }

    /// What the client library says, without the password, should a server repeat it.
    pub(super) fn redacted(
        &self,
        error: &redis::RedisError,
    ) -> Box<dyn std::error::Error + Send + Sync> {
        let text = error.to_string();
        match self.secret.as_ref().map(Secret::reveal) {
            Some(secret) if !secret.is_empty() && text.contains(secret) => {
                text.replace(secret, "***").into()
            }
            _ => error.clone().into(),
        }
    }
}

fn prefix(url: &StoreUrl) -> Result<String, String> {
    let prefix = url.option("prefix").unwrap_or("frazil");
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    if (1..=PREFIX_MAX).contains(&prefix.len()) && prefix.chars().all(fits) {
        return Ok(prefix.to_owned());
    }
    Err(format!("prefix is 1 to {PREFIX_MAX} letters, digits, '.', '_', '-' or ':'"))
}

fn isolation(url: &StoreUrl) -> Result<Duration, String> {
    let Some(text) = url.option("isolation") else { return Ok(ISOLATION_DEFAULT) };
    let fitting = duration(text).filter(|isolation| *isolation <= ISOLATION_MAX);
    fitting.ok_or_else(|| "isolation is a time such as 15s, and at most 1h".to_owned())
}

fn durability(url: &StoreUrl) -> Result<Durability, String> {
    match url.option("durability") {
        // All replicas are waited for where that keeps holders apart, without being asked: when a
        // slot is taken that its holder did not release.
        None | Some("async" | "wait-all") => Ok(Durability::Async),
        Some(other) => {
            let count = other.strip_prefix("wait:").and_then(|count| count.parse().ok());
            let fitting = count.filter(|count| (1..=REPLICAS_MAX).contains(count));
            fitting.map(Durability::Wait).ok_or_else(|| {
                format!("durability is async, wait:N (N from 1 to {REPLICAS_MAX}) or wait-all")
            })
        }
    }
}

fn certificates(url: &StoreUrl) -> Result<TlsCertificates, Error> {
    let PemFiles { authorities, identity } = url.pem_files()?;
    let client_tls = identity.map(|(cert, key)| ClientTlsConfig {
        client_cert: cert.into_bytes(),
        client_key: key.into_bytes(),
    });
    Ok(TlsCertificates { client_tls, root_cert: authorities.map(String::into_bytes) })
}
