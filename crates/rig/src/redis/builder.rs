//! The configuration with which a Redis server starts.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use super::{ClientTls, Redis};
use crate::certificates::Certificates;
use crate::daemon::Daemon;
use crate::directory;
use crate::false_clock::FalseClock;
use crate::ports::{free_port, retry_on_clash};
use crate::process::Recipe;
use crate::program;
use crate::waiting::{AGREE_LIMIT, wait_until};

/// When an append-only file is synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOnly {
    /// After each write, before the answer.
    Always,
    /// Once a second.
    EverySecond,
}

/// A Redis server to be started; made by [`Redis::builder`].
#[derive(Debug, Clone, Default)]
pub struct RedisBuilder {
    lines: Vec<String>,
    master: Option<u16>,
    tls: Option<ServerTls>,
    password: Option<String>,
    environment: Vec<(OsString, OsString)>,
}

#[derive(Debug, Clone)]
struct ServerTls {
    server: [String; 2],
    client: ClientTls,
}

impl RedisBuilder {
    /// Adds a line to the configuration file, such as `maxmemory-policy allkeys-lru`.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Makes the server a replica of `master`; it is ready when it is in sync.
    #[must_use]
    pub fn replica_of(mut self, master: &Redis) -> Self {
        self.master = Some(master.port);
        self
    }

    /// Makes the server speak only TLS. A client may show a certificate but need not. The
    /// certificates must live as long as the server is to be restarted.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        self.tls = Some(ServerTls {
            server: [shown(certificates.server_cert()), shown(certificates.server_key())],
            client: ClientTls {
                ca: certificates.ca().to_owned(),
                cert: certificates.client_cert().to_owned(),
                key: certificates.client_key().to_owned(),
            },
        });
        self
    }

    /// Keeps an append-only file, so that data outlives a restart.
    #[must_use]
    pub fn persistent(self, sync: AppendOnly) -> Self {
        let sync = match sync {
            AppendOnly::Always => "always",
            AppendOnly::EverySecond => "everysec",
        };
        self.line("appendonly yes").line(format!("appendfsync {sync}"))
    }

    /// Lets the server go by a clock that can be set.
    #[must_use]
    pub fn clock(mut self, clock: &FalseClock) -> Self {
        let environment = clock.environment();
        self.environment = environment.map(|(name, value)| (name.into(), value.into())).to_vec();
        self
    }

    /// Asks clients, and replicas, for this password; [`Redis::cli`] gives it.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    ///
    /// If Redis is not installed or does not start; the message has the end of its log.
    pub fn start(&self) -> io::Result<Redis> {
        let redis = retry_on_clash(|| {
            let redis = self.prepare()?;
            redis.restart()?;
            Ok(redis)
        })?;
        if self.master.is_some() {
            wait_until("a Redis replica to be in sync", AGREE_LIMIT, || {
                redis.info("master_link_status").is_ok_and(|status| status == "up")
            })?;
        }
        Ok(redis)
    }

    fn prepare(&self) -> io::Result<Redis> {
        let directory = directory::make("redis-")?;
        let port = free_port()?;
        let config = directory.path().join("redis.conf");
        fs::write(&config, self.config(port, directory.path()))?;
        let daemon = Daemon::new(Recipe {
            environment: self.environment.clone(),
            program: program::find("redis-server")?,
            arguments: vec![config.into()],
            log: directory.path().join("log"),
            port,
        });
        let tls = self.tls.as_ref().map(|tls| tls.client.clone());
        Ok(Redis { daemon, directory, port, tls, password: self.password.clone() })
    }

    fn config(&self, port: u16, directory: &Path) -> String {
        let mut lines: Vec<String> = [
            "bind 127.0.0.1",
            "protected-mode no",
            "daemonize no",
            "save \"\"",
            "appendonly no",
            // A replica is in sync at once instead of after the default five seconds.
            "repl-diskless-sync-delay 0",
            "repl-ping-replica-period 1",
        ]
        .map(str::to_owned)
        .into();
        lines.push(format!("dir {}", directory.display()));
        match &self.tls {
            None => lines.push(format!("port {port}")),
            Some(tls) => lines.extend(tls.lines(port)),
        }
        if let Some(master) = self.master {
            lines.push(format!("replicaof 127.0.0.1 {master}"));
        }
        if let Some(password) = &self.password {
            lines.push(format!("requirepass {password}"));
            lines.push(format!("masterauth {password}"));
        }
        lines.extend_from_slice(&self.lines);
        lines.join("\n") + "\n"
    }
}

impl ServerTls {
    fn lines(&self, port: u16) -> [String; 7] {
        let [cert, key] = &self.server;
        [
            "port 0".to_owned(),
            format!("tls-port {port}"),
            format!("tls-cert-file {cert}"),
            format!("tls-key-file {key}"),
            format!("tls-ca-cert-file {}", shown(&self.client.ca)),
            "tls-auth-clients optional".to_owned(),
            "tls-replication yes".to_owned(),
        ]
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
