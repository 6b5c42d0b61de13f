//! The settings of a connection.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

/// How a member is reached, and who asks. `Debug` shows no key.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// How long a connection may take to be made. Requests have no limit of their own.
    pub connect_timeout: Duration,
    /// Probes of the connection while it carries something, so that a watch ends with it.
    pub ping: Option<Ping>,
    /// Speaks TLS.
    pub tls: Option<ClientTlsConfig>,
    /// Logs in before the first request.
    pub login: Option<Login>,
    /// The largest answer that is taken, in bytes.
    pub answer_max: usize,
}

/// Probes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// How often. etcd closes a connection that is probed more often than every 5 s.
    pub every: Duration,
    /// How long the answer may take before the connection is given up.
    pub timeout: Duration,
}

/// A user of etcd. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Why no connection can be prepared: the address is none, or the TLS settings are of no use.
#[derive(Debug)]
pub struct ConfigError {
    address: String,
    cause: tonic::transport::Error,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connect_timeout, ping, tls, login, answer_max } = self;
        f.debug_struct("Config")
            .field("connect_timeout", connect_timeout)
            .field("ping", ping)
            .field("has_tls", &tls.is_some())
            .field("login", login)
            .field("answer_max", answer_max)
            .finish()
    }
}

impl Default for Config {
    /// No TLS, no login, no probes, 5 s to connect and 4 MiB for an answer.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            ping: None,
            tls: None,
            login: None,
            answer_max: 4 << 20,
        }
    }
}

impl Config {
    /// A connection that is made when it is first used, and again when it is lost.
    pub(crate) fn channel(&self, address: &str) -> Result<Channel, ConfigError> {
        let prepared = self.endpoint(address);
        let failed = |cause| ConfigError { address: address.to_owned(), cause };
        Ok(prepared.map_err(failed)?.connect_lazy())
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint, tonic::transport::Error> {
        let endpoint = match &self.tls {
            Some(tls) => {
                Endpoint::from_shared(format!("https://{address}"))?.tls_config(tls.clone())?
            }
            None => Endpoint::from_shared(format!("http://{address}"))?,
        };
        let endpoint = endpoint.connect_timeout(self.connect_timeout);
        Ok(match self.ping {
            Some(Ping { every, timeout }) => endpoint
                .http2_keep_alive_interval(every)
                .keep_alive_timeout(timeout)
                // etcd closes a connection that is probed while it carries nothing.
                .keep_alive_while_idle(false),
            None => endpoint,
        })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot prepare a connection to {}", self.address)
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

#[cfg(test)]
mod tests {
    use tonic::transport::Certificate;

    use super::*;

    #[test]
    fn what_cannot_be_connected_to_is_said_with_its_cause() {
        let not_pem = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(
            "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n",
        ));
        let tls = Config { tls: Some(not_pem), ..Config::default() };
        for (config, address) in [(Config::default(), "two words:2379"), (tls, "host:2379")] {
            let error = config.endpoint(address).unwrap_err();
            let error = ConfigError { address: address.to_owned(), cause: error };
            assert!(error.to_string().contains(address), "{error}");
            assert!(error.source().is_some());
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let login = Login { user: "app".into(), password: "open-sesame".into() };
        let shown = format!("{:?}", Config { login: Some(login), ..Config::default() });
        assert!(shown.contains("app") && !shown.contains("sesame"), "{shown}");
    }
}
