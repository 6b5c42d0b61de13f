//! Redis sentinels that watch a master and promote a replica when it is gone.

use std::fs;
use std::io;

use super::Redis;
use crate::daemon::Daemon;
use crate::directory;
use crate::ports::{free_port, retry_on_clash};
use crate::process::Recipe;
use crate::program;
use crate::waiting::{AGREE_LIMIT, wait_for, wait_until};

/// The name under which the sentinels watch the master.
const MASTER: &str = "frazil";

const SENTINELS: usize = 3;

const QUORUM: usize = 2;

/// Several `redis-sentinel` processes that watch one master under the name `frazil`.
///
/// A master that is silent for half a second is replaced.
#[derive(Debug)]
pub struct Sentinels {
    sentinels: Vec<Redis>,
}

impl Sentinels {
    /// Starts three sentinels with a quorum of two. The master's replicas should be in sync
    /// before: it waits until every sentinel knows the master, its replicas and the other
    /// sentinels, which takes two to four seconds.
    ///
    /// # Errors
    ///
    /// If Redis is not installed, or they do not find each other.
    pub fn start(master: &Redis) -> io::Result<Self> {
        let sentinels =
            (0..SENTINELS).map(|_| start_one(master)).collect::<io::Result<Vec<Redis>>>()?;
        let sentinels = Self { sentinels };
        let replicas = master.info("connected_slaves")?;
        let others = (SENTINELS - 1).to_string();
        wait_until("sentinels to know all", AGREE_LIMIT, || {
            sentinels.sentinels.iter().all(|sentinel| {
                let known = |field| field_of_master(sentinel, field).ok().flatten();
                known("num-slaves").as_ref() == Some(&replicas)
                    && known("num-other-sentinels").as_ref() == Some(&others)
                    && known("flags").as_deref() == Some("master")
            })
        })?;
        Ok(sentinels)
    }

    /// `redis+sentinel://127.0.0.1:PORT,127.0.0.1:PORT,127.0.0.1:PORT/frazil`.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.sentinels.iter().map(Redis::address).collect();
        format!("redis+sentinel://{}/{MASTER}", addresses.join(","))
    }

    /// The sentinels themselves: each can be killed, paused and asked like a Redis server.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.sentinels
    }

    /// The port of the master, if all sentinels that run agree on it.
    ///
    /// # Errors
    ///
    /// If a sentinel does not answer, or they do not agree.
    pub fn master_port(&self) -> io::Result<u16> {
        let mut ports = self
            .sentinels
            .iter()
            .filter(|sentinel| sentinel.daemon.runs())
            .map(named_master)
            .collect::<io::Result<Vec<u16>>>()?;
        ports.dedup();
        match ports[..] {
            [port] => Ok(port),
            _ => Err(io::Error::other(format!("the sentinels do not agree: {ports:?}"))),
        }
    }

    /// Waits until all sentinels that run name another master than the one on `old_port`, and
    /// returns its port.
    ///
    /// # Errors
    ///
    /// If that takes too long.
    pub fn wait_for_failover(&self, old_port: u16) -> io::Result<u16> {
        wait_for("the sentinels to promote a replica", AGREE_LIMIT, || {
            Ok(self.master_port().ok().filter(|port| *port != old_port))
        })
    }
}

fn start_one(master: &Redis) -> io::Result<Redis> {
    retry_on_clash(|| {
        let directory = directory::make("sentinel-")?;
        let port = free_port()?;
        let config = directory.path().join("sentinel.conf");
        let (at, watched) = (directory.path().display(), master.port());
        let mut text = format!(
            "port {port}\nbind 127.0.0.1\nprotected-mode no\ndaemonize no\ndir {at}\n\
             sentinel monitor {MASTER} 127.0.0.1 {watched} {QUORUM}\n\
             sentinel down-after-milliseconds {MASTER} 500\n\
             sentinel failover-timeout {MASTER} 2000\n\
             sentinel parallel-syncs {MASTER} 1\n"
        );
        if let Some(password) = &master.password {
            text += &format!("sentinel auth-pass {MASTER} {password}\n");
        }
        fs::write(&config, text)?;
        let daemon = Daemon::new(Recipe {
            environment: Vec::new(),
            program: program::find("redis-sentinel")?,
            arguments: vec![config.into()],
            log: directory.path().join("log"),
            port,
        });
        let sentinel = Redis { daemon, directory, port, tls: None, password: None };
        sentinel.restart()?;
        Ok(sentinel)
    })
}

fn named_master(sentinel: &Redis) -> io::Result<u16> {
    let reply = sentinel.cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER])?;
    let port = reply.lines().nth(1).and_then(|line| line.trim().parse().ok());
    port.ok_or_else(|| io::Error::other(format!("no master in: {reply}")))
}

/// One field of what the sentinel knows about the master; names and values come line by line.
fn field_of_master(sentinel: &Redis, field: &str) -> io::Result<Option<String>> {
    let reply = sentinel.cli(&["SENTINEL", "MASTER", MASTER])?;
    let mut lines = reply.lines();
    while let Some(name) = lines.next() {
        let value = lines.next().unwrap_or_default();
        if name == field {
            return Ok(Some(value.to_owned()));
        }
    }
    Ok(None)
}
