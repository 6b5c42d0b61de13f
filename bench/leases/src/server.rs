//! A real server of each kind, and how many operations it has served.

use std::io::{Read, Write};
use std::net::TcpStream;

use frazil_rig::{Etcd, Redis, ZooKeeper};

/// A store to measure.
pub(crate) enum Server {
    File(tempfile::TempDir),
    Redis(Redis),
    Etcd(Etcd),
    ZooKeeper(ZooKeeper),
}

impl Server {
    pub(crate) fn start(name: &str) -> std::io::Result<Self> {
        Ok(match name {
            "redis" => Self::Redis(Redis::start()?),
            "etcd" => Self::Etcd(Etcd::start()?),
            "zk" => Self::ZooKeeper(ZooKeeper::start()?),
            _ => Self::File(tempfile::tempdir()?),
        })
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::File(directory) => format!("file:{}", directory.path().display()),
            Self::Redis(redis) => redis.url(),
            Self::Etcd(etcd) => etcd.url(),
            Self::ZooKeeper(zookeeper) => zookeeper.url(),
        }
    }

    /// How many requests the server has answered, by its own count.
    pub(crate) fn operations(&self) -> Option<f64> {
        match self {
            Self::File(_) => None,
            Self::Redis(redis) => redis_operations(redis),
            Self::Etcd(etcd) => etcd_operations(&etcd.address()),
            Self::ZooKeeper(zookeeper) => {
                let said = zookeeper.four_letter_word("srvr").ok()?;
                let line = said.lines().find_map(|line| line.strip_prefix("Received: "))?;
                line.trim().parse().ok()
            }
        }
    }
}

/// The scripts that Redis has run for clients; what they call in turn is no operation of a client.
fn redis_operations(redis: &Redis) -> Option<f64> {
    let text = redis.cli(&["info", "commandstats"]).ok()?;
    let scripts = text.lines().filter(|line| line.starts_with("cmdstat_eval"));
    let calls = scripts
        .filter_map(|line| line.split("calls=").nth(1)?.split(',').next()?.parse::<f64>().ok());
    Some(calls.sum())
}

/// The unary calls that etcd counts in its metrics.
fn etcd_operations(address: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let calls = text.lines().filter(|line| {
        line.starts_with("grpc_server_handled_total{") && line.contains("grpc_type=\"unary\"")
    });
    Some(calls.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}
