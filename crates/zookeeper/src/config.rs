//! The settings of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::ClientConfig;

use crate::session::Session;

/// Which servers are asked, by whom, and for what session. `Debug` shows no key.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// Names or addresses of the servers, with their ports. They are tried in an order by chance.
    pub hosts: Vec<(String, u16)>,
    /// How long the session is to last without a sign of life. Servers have bounds for it.
    pub session_timeout: Duration,
    /// How long one server may take until a session begins, and stay silent later, before the next
    /// is tried. If it is more than 3/5 of what the session lasts, it is 2/5 of that.
    pub silence_max: Duration,
    /// Speaks TLS.
    pub tls: Option<Arc<ClientConfig>>,
    /// Logs in by the scheme `digest`.
    pub login: Option<Login>,
    /// The session to go on with, instead of a new one.
    pub session: Option<Session>,
    /// Leaves the session to its time-out when the last clone of the client is dropped. Otherwise
    /// it is closed then, and its ephemeral nodes are deleted.
    pub detached: bool,
}

/// A user. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Config {
    /// A new session of 10 s, without TLS and login, with the servers at these names and ports.
    pub fn new(hosts: impl Into<Vec<(String, u16)>>) -> Self {
        Self {
            hosts: hosts.into(),
            session_timeout: Duration::from_secs(10),
            silence_max: Duration::from_secs(4),
            tls: None,
            login: None,
            session: None,
            detached: false,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hosts, session_timeout, silence_max, tls, login, session, detached } = self;
        f.debug_struct("Config")
            .field("hosts", hosts)
            .field("session_timeout", session_timeout)
            .field("silence_max", silence_max)
            .field("has_tls", &tls.is_some())
            .field("login", login)
            .field("session", session)
            .field("detached", detached)
            .finish()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let mut config = Config::new([("host".to_owned(), 2181)]);
        config.login = Some(Login { user: "app".into(), password: "open-sesame".into() });
        let shown = format!("{config:?}");
        assert!(shown.contains("app") && !shown.contains("sesame"), "{shown}");
    }
}
