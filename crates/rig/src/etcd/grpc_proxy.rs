//! etcd's own gRPC proxy.

use std::io;
use std::process::Command;

use tempfile::TempDir;

use super::Etcd;
use crate::daemon::Daemon;
use crate::ports::{free_port, retry_on_clash};
use crate::process::Recipe;
use crate::waiting::READY_LIMIT;
use crate::{directory, program};

/// `etcd grpc-proxy` in front of a member without TLS: it gathers watches and keeps leases alive on behalf of its
/// clients.
#[derive(Debug)]
pub struct EtcdGrpcProxy {
    /// Before the directory, so that the process is gone when the directory is removed.
    daemon: Daemon,
    port: u16,
    _directory: TempDir,
}

impl EtcdGrpcProxy {
    /// Starts one and waits until a read passes through it.
    ///
    /// # Errors
    ///
    /// If etcd is not installed or the proxy does not start; the message has the end of its log.
    pub fn start(etcd: &Etcd) -> io::Result<Self> {
        retry_on_clash(|| {
            let (directory, port) = (directory::make("etcd-proxy-")?, free_port()?);
            let mut arguments: Vec<_> = ["grpc-proxy", "start"].map(Into::into).into();
            for (flag, value) in [
                ("--endpoints", etcd.address()),
                ("--listen-addr", format!("127.0.0.1:{port}")),
                ("--data-dir", directory.path().join("data").display().to_string()),
            ] {
                arguments.extend([flag.into(), value.into()]);
            }
            let recipe = Recipe {
                program: program::find("etcd")?,
                arguments,
                environment: Vec::new(),
                log: directory.path().join("log"),
                port,
            };
            let proxy = Self { daemon: Daemon::new(recipe), port, _directory: directory };
            proxy.daemon.launch()?;
            proxy.daemon.until_ready(READY_LIMIT, || proxy.answers().is_ok())?;
            Ok(proxy)
        })
    }

    /// `127.0.0.1:PORT`, for clients.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn answers(&self) -> io::Result<String> {
        let mut command = Command::new(program::find("etcdctl")?);
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.address(), "get", "nothing"]);
        program::run(&mut command)
    }
}
