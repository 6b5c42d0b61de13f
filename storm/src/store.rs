//! The store under test, and what can be done to it.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use frazil_rig::{AppendOnly, Daemon, Etcd, FalseClock, Proxy, Redis, ZooKeeper};
use serde::Serialize;
use tempfile::TempDir;

/// How long a silent client of ZooKeeper stays present.
const SESSION: &str = "1s";

/// Which store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    File,
    Redis,
    Etcd,
    Zk,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::File, Self::Redis, Self::Etcd, Self::Zk];
    /// Those that are servers, and can be cut off.
    pub(crate) const SERVERS: [Self; 3] = [Self::Redis, Self::Etcd, Self::Zk];
}

/// A store that runs.
#[derive(Debug)]
pub(crate) struct Store {
    server: Server,
}

#[derive(Debug)]
enum Server {
    File(TempDir),
    Redis { redis: Redis, clock: FalseClock },
    Etcd(Etcd),
    Zk(ZooKeeper),
}

/// How one node reaches the store: a way of its own, which can be cut.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) url: String,
    /// Files are reached without a network.
    pub(crate) proxy: Option<Proxy>,
}

impl Store {
    /// Starts one. Redis keeps what it acknowledged, as the documentation asks for.
    pub(crate) fn start(kind: Kind) -> io::Result<Self> {
        let server = match kind {
            Kind::File => Server::File(TempDir::with_prefix("storm-file-")?),
            Kind::Redis => {
                let clock = FalseClock::new()?;
                let builder = Redis::builder().persistent(AppendOnly::Always).clock(&clock);
                Server::Redis { redis: builder.start()?, clock }
            }
            Kind::Etcd => Server::Etcd(Etcd::start()?),
            Kind::Zk => Server::Zk(ZooKeeper::start()?),
        };
        Ok(Self { server })
    }

    pub(crate) fn kind(&self) -> Kind {
        match &self.server {
            Server::File(_) => Kind::File,
            Server::Redis { .. } => Kind::Redis,
            Server::Etcd(_) => Kind::Etcd,
            Server::Zk(_) => Kind::Zk,
        }
    }

    /// The URL without a proxy, for the rig itself.
    pub(crate) fn url(&self) -> String {
        self.url_at(&self.address().unwrap_or_default())
    }

    /// The same, for leases that are longer than those of most rows.
    pub(crate) fn url_of_long_leases(&self) -> String {
        with_long_session(&self.url())
    }

    /// A way to it through a proxy.
    pub(crate) fn link(&self) -> io::Result<Link> {
        let Some(address) = self.address() else {
            return Ok(Link { url: self.url(), proxy: None });
        };
        let proxy = Proxy::start(&address)?;
        Ok(Link { url: self.url_at(&proxy.address()), proxy: Some(proxy) })
    }

    /// Its process, if it is a server.
    pub(crate) fn daemon(&self) -> Option<&Daemon> {
        match &self.server {
            Server::File(_) => None,
            Server::Redis { redis, .. } => Some(redis),
            Server::Etcd(etcd) => Some(etcd),
            Server::Zk(zookeeper) => Some(zookeeper),
        }
    }

    /// Kills it, and starts it again with what it has on disk.
    pub(crate) fn restart(&self) -> io::Result<()> {
        match &self.server {
            Server::File(_) => Ok(()),
            Server::Redis { redis, .. } => redis.restart(),
            Server::Etcd(etcd) => etcd.restart(),
            Server::Zk(zookeeper) => zookeeper.restart(),
        }
    }

    /// Takes everything away from it: FLUSHALL, an empty data directory, deleted nodes.
    pub(crate) fn wipe(&self) -> io::Result<()> {
        match &self.server {
            Server::File(_) => Err(io::Error::other("a directory of files is not wiped")),
            Server::Redis { redis, .. } => redis.cli(&["FLUSHALL"]).map(drop),
            Server::Etcd(etcd) => etcd.wipe(),
            Server::Zk(zookeeper) => delete_all(&zookeeper.address()),
        }
    }

    /// How many records it has, by its own tools: a look past everything that is tested.
    pub(crate) fn record_count(&self) -> io::Result<u64> {
        let lines = |text: String| text.lines().filter(|line| !line.trim().is_empty()).count() as u64;
        match &self.server {
            Server::File(directory) => Ok(walk(directory.path())),
            Server::Redis { redis, .. } => {
                let size = redis.cli(&["DBSIZE"])?;
                size.trim().parse().map_err(|_| io::Error::other(size))
            }
            Server::Etcd(etcd) => etcd.etcdctl(&["get", "", "--prefix", "--keys-only"]).map(lines),
            Server::Zk(zookeeper) => {
                let text = zookeeper.four_letter_word("mntr")?;
                let count = text.lines().find_map(|line| line.strip_prefix("zk_znode_count\t"));
                count.and_then(|count| count.trim().parse().ok()).ok_or(io::Error::other(text))
            }
        }
    }

    /// Redis, for what only Redis can suffer.
    pub(crate) fn redis(&self) -> io::Result<(&Redis, &FalseClock)> {
        match &self.server {
            Server::Redis { redis, clock } => Ok((redis, clock)),
            _ => Err(io::Error::other("this is done to Redis alone")),
        }
    }

    /// etcd, for what only etcd can suffer.
    pub(crate) fn etcd(&self) -> io::Result<&Etcd> {
        match &self.server {
            Server::Etcd(etcd) => Ok(etcd),
            _ => Err(io::Error::other("this is done to etcd alone")),
        }
    }

    fn address(&self) -> Option<String> {
        match &self.server {
            Server::File(_) => None,
            Server::Redis { redis, .. } => Some(redis.address()),
            Server::Etcd(etcd) => Some(etcd.address()),
            Server::Zk(zookeeper) => Some(zookeeper.address()),
        }
    }

    fn url_at(&self, address: &str) -> String {
        match &self.server {
            Server::File(directory) => format!("file:{}", directory.path().join("store").display()),
            Server::Redis { .. } => format!("redis://{address}"),
            Server::Etcd(_) => format!("etcd://{address}"),
            // As long as the lease: otherwise the session keeps a frozen node present.
            Server::Zk(_) => format!("zk://{address}?session={SESSION}"),
        }
    }
}

/// A URL whose session is as long as leases are, whatever they are.
pub(crate) fn with_long_session(url: &str) -> String {
    url.replace(&format!("?session={SESSION}"), "")
}

/// Deletes everything but ZooKeeper's own nodes, with ZooKeeper's own tool.
fn delete_all(address: &str) -> io::Result<()> {
    let tool = "/usr/share/zookeeper/bin/zkCli.sh";
    let run = |arguments: &[&str]| {
        let output = Command::new(tool).args(["-server", address]).args(arguments).output()?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let listed = run(&["ls", "/"])?;
    let names = listed.lines().rev().find_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let names = names.ok_or_else(|| io::Error::other(format!("zkCli.sh said {listed}")))?;
    for name in names.split(", ").filter(|name| !name.is_empty() && *name != "zookeeper") {
        run(&["deleteall", &format!("/{name}")])?;
    }
    Ok(())
}

fn walk(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { 1 }).sum()
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Redis => "redis",
            Self::Etcd => "etcd",
            Self::Zk => "zk",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.to_string() == text)
            .ok_or_else(|| format!("no store `{text}`: file, redis, etcd or zk"))
    }
}
