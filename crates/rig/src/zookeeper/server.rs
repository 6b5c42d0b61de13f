//! One ZooKeeper process.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::time::Duration;

use tempfile::TempDir;

use super::ZooKeeperBuilder;
use crate::daemon::Daemon;
use crate::ports::listens;
use crate::waiting::READY_LIMIT;

/// How long a ready server may take to answer one word.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// One ZooKeeper server: alone, or a node of a [`ZooKeeperEnsemble`](crate::ZooKeeperEnsemble).
///
/// A tick is 500 ms and sessions may last from 1 to 60 s, so that tests can see them end.
#[derive(Debug)]
pub struct ZooKeeper {
    /// Before the directory, so that the process is gone when the directory is removed.
    pub(super) daemon: Daemon,
    pub(super) _directory: TempDir,
    pub(super) ports: Ports,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    /// Without TLS, also if there is a port with TLS: for four-letter words.
    pub(super) plain: u16,
    pub(super) secure: Option<u16>,
}

impl ZooKeeper {
    /// Starts a single server and waits until it serves.
    ///
    /// # Errors
    ///
    /// If ZooKeeper is not installed or does not start; the message has the end of its log.
    pub fn start() -> io::Result<Self> {
        Self::builder().start()
    }

    /// A single server with more than the default configuration.
    #[must_use]
    pub fn builder() -> ZooKeeperBuilder {
        ZooKeeperBuilder::default()
    }

    /// The port for clients on 127.0.0.1; the one with TLS if it was asked for.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.ports.secure.unwrap_or(self.ports.plain)
    }

    /// `127.0.0.1:PORT`, for clients.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// `zk://127.0.0.1:PORT`, with TLS too.
    #[must_use]
    pub fn url(&self) -> String {
        format!("zk://{}", self.address())
    }

    /// Kills the process if it runs, starts it again on the same ports and data, and waits until
    /// it serves. That takes a quorum; see [`Daemon::launch`].
    ///
    /// # Errors
    ///
    /// If it does not become ready.
    pub fn restart(&self) -> io::Result<()> {
        self.kill();
        self.launch()?;
        self.wait_ready()
    }

    /// Waits until the server serves clients, on all its ports.
    ///
    /// # Errors
    ///
    /// If it does not within the limit, or its process ends.
    pub fn wait_ready(&self) -> io::Result<()> {
        self.daemon.until_ready(READY_LIMIT, || self.mode().is_ok() && self.is_secure_port_open())
    }

    /// The port with TLS, if there is to be one, opens by itself, before or after the other.
    fn is_secure_port_open(&self) -> bool {
        let opened = |port| self.id().is_some_and(|id| listens(id, port));
        self.ports.secure.is_none_or(opened)
    }

    /// The answer to a four-letter word such as `srvr`, `cons` or `dump`.
    ///
    /// # Errors
    ///
    /// If the server does not answer at once.
    pub fn four_letter_word(&self, word: &str) -> io::Result<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.plain));
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// `standalone`, `leader`, `follower` or `observer`.
    ///
    /// # Errors
    ///
    /// If the server does not serve, for instance without a quorum.
    pub fn mode(&self) -> io::Result<String> {
        let answer = self.four_letter_word("srvr")?;
        let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
        mode.map(str::to_owned).ok_or_else(|| io::Error::other(format!("no mode in: {answer}")))
    }
}

impl Deref for ZooKeeper {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}
