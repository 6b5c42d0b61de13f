//! One etcd process.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::EtcdBuilder;
use crate::daemon::Daemon;
use crate::program;
use crate::waiting::READY_LIMIT;

/// How long one `etcdctl` command may take; a member that lost its cluster fails after it.
const COMMAND_LIMIT: &str = "3s";

/// One etcd member: alone, or a node of an [`EtcdCluster`](crate::EtcdCluster).
///
/// The election timeout is 500 ms, so that fail-over is quick. etcd's shortest lease follows it: a
/// shorter time to live than one second is raised to one second.
#[derive(Debug)]
pub struct Etcd {
    /// Before the directory, so that the process is gone when the directory is removed.
    pub(super) daemon: Daemon,
    pub(super) directory: TempDir,
    pub(super) ports: Ports,
    pub(super) name: String,
    /// The `--initial-cluster` with which it was started.
    pub(super) cluster: String,
    pub(super) access: Access,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) client: u16,
    pub(super) peer: u16,
}

/// What `etcdctl` needs to be let in.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    pub(super) tls: bool,
    /// Flags with the CA and the client's certificate.
    pub(super) tls_flags: Vec<OsString>,
    /// `USER:PASSWORD`.
    pub(super) user: Option<String>,
}

impl Etcd {
    /// Starts a single member and waits until it is healthy.
    ///
    /// # Errors
    ///
    /// If etcd is not installed or does not start; the message has the end of its log.
    pub fn start() -> io::Result<Self> {
        Self::builder().start()
    }

    /// A single member with more than the default configuration.
    #[must_use]
    pub fn builder() -> EtcdBuilder {
        EtcdBuilder::default()
    }

    /// The port for clients on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.ports.client
    }

    /// `127.0.0.1:PORT`, for clients.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.client)
    }

    /// `etcd://127.0.0.1:PORT`, with TLS too; credentials are not in it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("etcd://{}", self.address())
    }

    /// Kills the process if it runs, starts it again on the same ports and data, and waits until
    /// it is healthy. That takes a quorum; see [`Daemon::launch`].
    ///
    /// # Errors
    ///
    /// If it does not become healthy.
    pub fn restart(&self) -> io::Result<()> {
        self.kill();
        self.launch()?;
        self.wait_ready()
    }

    /// Waits until the member serves linearizable reads.
    ///
    /// # Errors
    ///
    /// If it does not within the limit, or its process ends.
    pub fn wait_ready(&self) -> io::Result<()> {
        self.daemon.until_ready(READY_LIMIT, || self.etcdctl(&["endpoint", "health"]).is_ok())
    }

    /// Runs `etcdctl` with these arguments against this member and returns what it printed.
    ///
    /// # Errors
    ///
    /// If `etcdctl` is not installed, or fails.
    pub fn etcdctl(&self, arguments: &[&str]) -> io::Result<String> {
        program::run(self.access.etcdctl(&[self])?.args(arguments))
    }

    /// Removes the data and starts again on the same ports, as a new and empty cluster. For a single
    /// member.
    ///
    /// # Errors
    ///
    /// If the data cannot be removed, or the member does not become healthy.
    pub fn wipe(&self) -> io::Result<()> {
        self.kill();
        fs::remove_dir_all(data_directory(&self.directory))?;
        self.restart()
    }

    /// Writes a snapshot of the data to the file `snapshot`.
    ///
    /// # Errors
    ///
    /// If `etcdctl` fails.
    pub fn save_snapshot(&self, snapshot: &Path) -> io::Result<()> {
        let mut command = self.access.etcdctl(&[self])?;
        program::run(command.args(["snapshot", "save"]).arg(snapshot)).map(drop)
    }

    /// Replaces the data by a snapshot, and starts again on the same ports. For a single member.
    ///
    /// # Errors
    ///
    /// If `etcdctl` can not restore it, or the member does not become healthy.
    pub fn restore_from(&self, snapshot: &Path) -> io::Result<()> {
        self.kill();
        let data = data_directory(&self.directory);
        fs::remove_dir_all(&data)?;
        let mut command = Command::new(program::find("etcdctl")?);
        command.env("ETCDCTL_API", "3").args(["snapshot", "restore"]).arg(snapshot);
        command.arg("--data-dir").arg(&data).args(["--name", &self.name]);
        command.args(["--initial-cluster", &self.cluster]);
        command.args(["--initial-advertise-peer-urls", &self.ports.peer_url()]);
        program::run(&mut command)?;
        self.restart()
    }
}

impl Deref for Etcd {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

pub(super) fn data_directory(directory: &TempDir) -> PathBuf {
    directory.path().join("data")
}

impl Ports {
    pub(super) fn peer_url(self) -> String {
        format!("http://127.0.0.1:{}", self.peer)
    }
}

impl Access {
    pub(super) fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// `etcdctl` with the flags that reach these members.
    pub(super) fn etcdctl(&self, members: &[&Etcd]) -> io::Result<Command> {
        let scheme = self.scheme();
        let endpoints: Vec<String> =
            members.iter().map(|member| format!("{scheme}://{}", member.address())).collect();
        let mut command = Command::new(program::find("etcdctl")?);
        command.env("ETCDCTL_API", "3").args(["--endpoints", &endpoints.join(",")]);
        command.args(["--command-timeout", COMMAND_LIMIT, "--dial-timeout", COMMAND_LIMIT]);
        command.args(&self.tls_flags);
        if let Some(user) = &self.user {
            command.args(["--user", user]);
        }
        Ok(command)
    }
}
