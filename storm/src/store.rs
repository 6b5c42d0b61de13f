//! The store under test, and what can be done to it.

mod pair;
mod zk;

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::str::FromStr;
use std::time::Duration;

use frazil_rig::{AppendOnly, Daemon, Etcd, EtcdCluster, FalseClock, Proxy, Redis, ZooKeeper};
use serde::Serialize;
use tempfile::TempDir;

use pair::Pair;

/// How long a silent client of ZooKeeper stays present.
const SESSION: &str = "1s";
/// How long a store that is there may take to answer.
const ANSWERS: Duration = Duration::from_millis(300);
/// The directory of a file store, within one of our own.
const FILES: &str = "store";
/// Where etcd and ZooKeeper keep what a namespace is.
const META_PATH: &str = "/frazil/default/meta";

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

/// How a store is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// One server, or a directory.
    One,
    /// Three members of etcd, or a Redis master and its replica under sentinels. There is no proxy on
    /// the way: clients are told the true addresses.
    Several,
    /// As a fresh installation has it, with the default options in the URL: Redis syncs once a second.
    Plain,
    /// A Redis master and its replica under sentinels, with the default options in the URL; both sync
    /// once a second.
    PlainPair,
    /// A Redis master under sentinels with two replicas, both of which must confirm what is written.
    Replicas,
}

/// A store that runs.
#[derive(Debug)]
pub(crate) struct Store {
    server: Server,
    setting: Setting,
}

#[derive(Debug)]
enum Server {
    File(TempDir),
    Redis { redis: Redis, clock: FalseClock },
    Etcd(Etcd),
    Zk(ZooKeeper),
    Pair(Box<Pair>),
    Members(EtcdCluster),
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
    pub(crate) fn start(kind: Kind, setting: Setting) -> io::Result<Self> {
        let server = match kind {
            Kind::Redis if setting == Setting::Several => {
                Server::Pair(Box::new(Pair::start(1, AppendOnly::Always)?))
            }
            Kind::Redis if setting == Setting::PlainPair => {
                Server::Pair(Box::new(Pair::start(1, AppendOnly::EverySecond)?))
            }
            Kind::Redis if setting == Setting::Replicas => {
                Server::Pair(Box::new(Pair::start(2, AppendOnly::Always)?))
            }
            Kind::Etcd if setting == Setting::Several => Server::Members(EtcdCluster::start(3)?),
            Kind::File => Server::File(TempDir::with_prefix("storm-file-")?),
            Kind::Redis => {
                let clock = FalseClock::new()?;
                let sync = match setting {
                    Setting::Plain => AppendOnly::EverySecond,
                    _ => AppendOnly::Always,
                };
                let redis = Redis::builder().persistent(sync).clock(&clock).start()?;
                Server::Redis { redis, clock }
            }
            Kind::Etcd => Server::Etcd(Etcd::start()?),
            Kind::Zk => Server::Zk(ZooKeeper::start()?),
        };
        Ok(Self { server, setting })
    }

    pub(crate) fn kind(&self) -> Kind {
        match &self.server {
            Server::File(_) => Kind::File,
            Server::Redis { .. } | Server::Pair(_) => Kind::Redis,
            Server::Etcd(_) | Server::Members(_) => Kind::Etcd,
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
            Server::File(_) | Server::Pair(_) | Server::Members(_) => None,
            Server::Redis { redis, .. } => Some(redis),
            Server::Etcd(etcd) => Some(etcd),
            Server::Zk(zookeeper) => Some(zookeeper),
        }
    }

    /// Kills it, and starts it again with what it has on disk.
    pub(crate) fn restart(&self) -> io::Result<()> {
        match &self.server {
            Server::File(_) | Server::Pair(_) | Server::Members(_) => Err(not_this()),
            Server::Redis { redis, .. } => redis.restart(),
            Server::Etcd(etcd) => etcd.restart(),
            Server::Zk(zookeeper) => zookeeper.restart(),
        }
    }

    /// Whether it leaves a question unanswered, asked past everything that is tested.
    pub(crate) fn is_silent(&self) -> bool {
        let question: &[u8] = match self.kind() {
            Kind::File => return false,
            Kind::Redis => b"PING\r\n",
            Kind::Etcd => b"GET /health HTTP/1.0\r\n\r\n",
            Kind::Zk => b"ruok",
        };
        let ask = || {
            let address = self.address().unwrap_or_default().parse().map_err(io::Error::other)?;
            let mut stream = TcpStream::connect_timeout(&address, ANSWERS)?;
            stream.set_read_timeout(Some(ANSWERS))?;
            stream.write_all(question)?;
            stream.read_exact(&mut [0])
        };
        ask().is_err()
    }

    /// Takes everything away from it: FLUSHALL, an empty data directory, deleted nodes, a
    /// removed directory.
    pub(crate) fn wipe(&self) -> io::Result<()> {
        match &self.server {
            Server::Pair(_) | Server::Members(_) => Err(not_this()),
            Server::File(directory) => std::fs::remove_dir_all(directory.path().join(FILES)),
            Server::Redis { redis, .. } => redis.cli(&["FLUSHALL"]).map(drop),
            Server::Etcd(etcd) => etcd.wipe(),
            Server::Zk(zookeeper) => zk::delete_all(&zookeeper.address()),
        }
    }

    /// The same, but for etcd and ZooKeeper by one call of their own tools: etcd runs on, and so do the
    /// leases of its clients.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match &self.server {
            Server::Etcd(etcd) => etcd.etcdctl(&["del", "--prefix", "/frazil"]).map(drop),
            Server::Zk(zookeeper) => {
                zk::cli(&zookeeper.address(), &["deleteall", "/frazil"]).map(drop)
            }
            _ => self.wipe(),
        }
    }

    /// The incarnation of the namespace in its meta record, by the store's own tools: it is another
    /// one after the store has forgotten it. None if there is none.
    pub(crate) fn incarnation(&self) -> io::Result<Option<String>> {
        let text = match &self.server {
            Server::Pair(_) | Server::Members(_) => return Err(not_this()),
            // There is no tool for files: what tells one directory from the next is its inode.
            Server::File(directory) => {
                use std::os::unix::fs::MetadataExt;
                let found = std::fs::metadata(directory.path().join(FILES)).ok();
                let born = |found: &std::fs::Metadata| (found.ino(), found.created().ok());
                return Ok(found.map(|found| format!("{:?}", born(&found))));
            }
            Server::Redis { redis, .. } => redis.cli(&["GET", "{frazil:default}:meta"])?,
            Server::Etcd(etcd) => etcd.etcdctl(&["get", "--print-value-only", META_PATH])?,
            Server::Zk(zookeeper) => zk::cli(&zookeeper.address(), &["get", META_PATH])?,
        };
        let meta = text
            .lines()
            .find_map(|line| serde_json::from_str::<serde_json::Value>(line.trim()).ok());
        Ok(meta.and_then(|meta| Some(meta["incarnation"].as_str()?.to_owned())))
    }

    /// Redis, for what only Redis can suffer.
    pub(crate) fn redis(&self) -> io::Result<(&Redis, &FalseClock)> {
        match &self.server {
            Server::Redis { redis, clock } => Ok((redis, clock)),
            _ => Err(not_this()),
        }
    }

    /// etcd, for what only etcd can suffer.
    pub(crate) fn etcd(&self) -> io::Result<&Etcd> {
        match &self.server {
            Server::Etcd(etcd) => Ok(etcd),
            _ => Err(not_this()),
        }
    }

    /// A master and its replicas.
    pub(crate) fn pair(&self) -> io::Result<&Pair> {
        match &self.server {
            Server::Pair(pair) => Ok(pair),
            _ => Err(not_this()),
        }
    }

    /// Several members of etcd.
    pub(crate) fn members(&self) -> io::Result<&EtcdCluster> {
        match &self.server {
            Server::Members(members) => Ok(members),
            _ => Err(not_this()),
        }
    }

    fn address(&self) -> Option<String> {
        match &self.server {
            Server::File(_) | Server::Pair(_) | Server::Members(_) => None,
            Server::Redis { redis, .. } => Some(redis.address()),
            Server::Etcd(etcd) => Some(etcd.address()),
            Server::Zk(zookeeper) => Some(zookeeper.address()),
        }
    }

    fn url_at(&self, address: &str) -> String {
        match &self.server {
            Server::File(directory) => format!("file:{}", directory.path().join(FILES).display()),
            Server::Pair(pair) if self.setting == Setting::PlainPair => pair.plain_url(),
            Server::Pair(pair) if self.setting == Setting::Replicas => {
                format!("{}?durability=wait-all", pair.plain_url())
            }
            Server::Pair(pair) => pair.url(),
            Server::Members(members) => members.url(),
            Server::Redis { .. } if self.setting == Setting::Plain => format!("redis://{address}"),
            // Only where a server has lost the trace of its past: newcomers then wait for as long.
            Server::Redis { .. } => format!("redis://{address}?isolation=2s"),
            Server::Etcd(_) => format!("etcd://{address}"),
            Server::Zk(_) if self.setting == Setting::Plain => format!("zk://{address}"),
            // As long as the lease: otherwise the session keeps a frozen node present.
            Server::Zk(_) => format!("zk://{address}?session={SESSION}"),
        }
    }
}

fn not_this() -> io::Error {
    io::Error::other("this cannot be done to this store")
}

/// A URL whose session is as long as leases are, whatever they are.
pub(crate) fn with_long_session(url: &str) -> String {
    url.replace(&format!("?session={SESSION}"), "")
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
