//! Redis: one server, sentinels over a master, and a cluster.

mod builder;
mod cluster;
mod sentinels;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::program;
use crate::waiting::READY_LIMIT;

pub use builder::{AppendOnly, RedisBuilder};
pub use cluster::RedisCluster;
pub use sentinels::Sentinels;

/// How long a ready server may take to answer one look.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);

/// A `redis-server`, without persistence unless asked for.
///
/// ```no_run
/// let redis = frazil_rig::Redis::start()?;
/// assert_eq!(redis.cli(&["PING"])?, "PONG\n");
/// redis.pause()?; // connections are accepted, nothing is answered
/// redis.resume()?;
/// redis.kill();
/// redis.restart()?; // the same port and directory
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Redis {
    /// Before the directory, so that the process is gone when the directory is removed.
    daemon: Daemon,
    directory: TempDir,
    port: u16,
    tls: Option<ClientTls>,
    password: Option<String>,
}

/// What `redis-cli` needs to talk to a server with TLS.
#[derive(Debug, Clone)]
struct ClientTls {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

impl Redis {
    /// Starts a server with the default configuration and waits until it answers.
    ///
    /// # Errors
    ///
    /// If Redis is not installed or does not start; the message has the end of its log.
    pub fn start() -> io::Result<Self> {
        Self::builder().start()
    }

    /// A server with more than the default configuration.
    #[must_use]
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    /// The port on 127.0.0.1; the TLS port if it speaks TLS.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://127.0.0.1:PORT`, or `rediss:` with TLS. A password is not in it.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://{}", self.address())
    }

    /// The server's working directory, with its append-only file.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills the process if it runs, and starts it again on the same port and directory.
    ///
    /// # Errors
    ///
    /// If it does not become ready.
    pub fn restart(&self) -> io::Result<()> {
        self.kill();
        self.daemon.launch()?;
        self.wait_ready()
    }

    /// Runs `redis-cli` with these arguments against the server and returns what it printed.
    /// An error that Redis answers is printed too; only a failed connection is an `Err`.
    ///
    /// # Errors
    ///
    /// If `redis-cli` is not installed or can not talk to the server.
    pub fn cli(&self, arguments: &[&str]) -> io::Result<String> {
        let mut command = Command::new(program::find("redis-cli")?);
        command.args(["-p", &self.port.to_string()]);
        if let Some(tls) = &self.tls {
            command.arg("--tls").arg("--cacert").arg(&tls.ca);
            command.arg("--cert").arg(&tls.cert).arg("--key").arg(&tls.key);
        }
        if let Some(password) = &self.password {
            command.env("REDISCLI_AUTH", password);
        }
        program::run(command.args(arguments))
    }

    /// One field of `INFO`, such as `role` or `master_replid`.
    ///
    /// # Errors
    ///
    /// If the server can not be asked or has no such field.
    pub fn info(&self, field: &str) -> io::Result<String> {
        let text = self.cli(&["INFO"])?;
        text.lines()
            .filter_map(|line| line.trim_end().split_once(':'))
            .find_map(|(name, value)| (name == field).then(|| value.to_owned()))
            .ok_or_else(|| io::Error::other(format!("INFO has no field {field}: {text}")))
    }

    fn wait_ready(&self) -> io::Result<()> {
        self.daemon.until_ready(READY_LIMIT, || self.answers())
    }

    fn answers(&self) -> bool {
        if self.tls.is_some() {
            return self.cli(&["PING"]).is_ok_and(|reply| reply.starts_with("PONG"));
        }
        ping(self.port)
            .is_ok_and(|reply| reply.starts_with("+PONG") || reply.starts_with("-NOAUTH"))
    }
}

impl Deref for Redis {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

/// The first line of the answer to PING, asked without the cost of a process.
fn ping(port: u16) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.write_all(b"PING\r\n")?;
    let mut buffer = [0; 64];
    let length = stream.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}
