//! The URL of a store: where it is and how to get in, in one line of text.

#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
mod access;
mod parse;
mod secret;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
pub(crate) use self::access::PemFiles;
pub use self::parse::{UrlError, duration};
pub use self::secret::{PASSWORD_VARIABLE, Secret};

/// How long one request to a store may take unless the URL says otherwise.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// A parsed store URL. Prints without its password, and so does its debug form.
///
/// ```
/// use frazil_coord::StoreUrl;
///
/// let url: StoreUrl = "redis://app:hunter2@10.0.0.7:6379/0?durability=wait-all".parse()?;
/// assert_eq!(url.to_string(), "redis://app:***@10.0.0.7:6379/0?durability=wait-all");
/// # Ok::<(), frazil_coord::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreUrl {
    /// The kind of store.
    pub scheme: Scheme,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Who logs in.
    pub user: Option<String>,
    /// With which password, if the URL says it.
    pub password: Option<Secret>,
    /// Where: each a host and a port.
    pub hosts: Vec<(String, u16)>,
    /// What follows the hosts, without the slash; for `file:` the path, for `static:` the number.
    pub path: String,
    /// What follows the question mark. Only options that the scheme knows.
    pub options: BTreeMap<String, String>,
}

/// The kinds of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// A directory on a local disk, for the processes of one machine.
    File,
    /// One fixed worker number.
    Static,
    /// Inside the process.
    Memory,
    /// A Redis server.
    Redis,
    /// Redis servers watched by Sentinels; the path names the master.
    RedisSentinel,
    /// A Redis Cluster.
    RedisCluster,
    /// etcd.
    Etcd,
    /// ZooKeeper.
    ZooKeeper,
}

impl Scheme {
    /// Every scheme with what it is called, plain and (where there is one) with TLS.
    pub(crate) const NAMES: [(Self, &'static str, &'static str); 8] = [
        (Self::File, "file", ""),
        (Self::Static, "static", ""),
        (Self::Memory, "memory", ""),
        (Self::Redis, "redis", "rediss"),
        (Self::RedisSentinel, "redis+sentinel", "rediss+sentinel"),
        (Self::RedisCluster, "redis+cluster", "rediss+cluster"),
        (Self::Etcd, "etcd", "etcds"),
        (Self::ZooKeeper, "zk", "zks"),
    ];

    /// Whether Redis speaks behind it.
    pub(crate) const fn is_redis(self) -> bool {
        matches!(self, Self::Redis | Self::RedisSentinel | Self::RedisCluster)
    }

    /// The port when the URL names none; `None` for schemes without hosts.
    pub(crate) const fn port(self, tls: bool) -> Option<u16> {
        match self {
            Self::File | Self::Static | Self::Memory => None,
            Self::Redis | Self::RedisCluster => Some(6379),
            Self::RedisSentinel => Some(26379),
            Self::Etcd => Some(2379),
            Self::ZooKeeper => Some(if tls { 2281 } else { 2181 }),
        }
    }

    /// The options that the scheme knows.
    #[must_use]
    pub const fn options(self) -> &'static [&'static str] {
        match self {
            Self::File => &["unsafe_filesystem", "unsafe_owner"],
            Self::Static => &["state", "unsafe_filesystem", "unsafe_owner"],
            Self::Memory => &[],
            Self::Redis | Self::RedisSentinel | Self::RedisCluster => &[
                "ca",
                "cert",
                "key",
                "durability",
                "isolation",
                "password_file",
                "prefix",
                "timeout",
            ],
            Self::Etcd => &["ca", "cert", "key", "password_file", "timeout"],
            Self::ZooKeeper => &["ca", "cert", "key", "password_file", "session", "timeout"],
        }
    }
}

impl StoreUrl {
    /// The file store in a directory.
    #[must_use]
    pub fn file(path: impl Into<String>) -> Self {
        Self {
            scheme: Scheme::File,
            tls: false,
            user: None,
            password: None,
            hosts: Vec::new(),
            path: path.into(),
            options: BTreeMap::new(),
        }
    }

    /// An option of the URL.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// How long one request may take. Checked when the URL was parsed.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.option("timeout").and_then(duration).unwrap_or(TIMEOUT_DEFAULT)
    }

    /// How long the store keeps the presence of a client that is silent, where the URL says it.
    /// Checked when the URL was parsed.
    #[must_use]
    pub fn session(&self) -> Option<Duration> {
        self.option("session").and_then(duration)
    }

    /// The hosts as `host:port`, with brackets around IPv6 addresses.
    pub fn addresses(&self) -> impl Iterator<Item = String> {
        self.hosts.iter().map(|(host, port)| match host.contains([':', '%']) {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        })
    }

    fn scheme_name(&self) -> &'static str {
        let (_, plain, tls) = Scheme::NAMES
            .into_iter()
            .find(|(scheme, _, _)| *scheme == self.scheme)
            .expect("every scheme has a name");
        if self.tls { tls } else { plain }
    }
}

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        parse::url(text)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme_name())?;
        if !self.hosts.is_empty() {
            f.write_str("//")?;
            let user = encoded(self.user.as_deref().unwrap_or_default(), "%?/@:");
            match (&self.user, &self.password) {
                (_, Some(_)) => write!(f, "{user}:***@")?,
                // A lone word may well be a password whose colon was forgotten.
                (Some(_), None) if self.scheme.is_redis() => f.write_str("***@")?,
                (Some(_), None) => write!(f, "{user}@")?,
                (None, None) => {}
            }
            f.write_str(&self.addresses().collect::<Vec<_>>().join(","))?;
            if !self.path.is_empty() {
                f.write_str("/")?;
            }
        } else if self.path.starts_with("//") {
            f.write_str("//")?;
        }
        // The last slash is no part of a path behind a host, unless it is written otherwise.
        let stem = match self.hosts.is_empty() {
            true => self.path.as_str(),
            false => self.path.trim_end_matches('/'),
        };
        f.write_str(&encoded(stem, "%?"))?;
        f.write_str(&encoded(&self.path[stem.len()..], "/"))?;
        for (index, (name, value)) in self.options.iter().enumerate() {
            let value = encoded(value, "%&");
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// A text that is read back as what it was: with percent signs for these characters, and for those
/// that steer a terminal.
fn encoded(text: &str, special: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        if special.contains(c) || c.is_control() {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                encoded.push_str(&format!("%{byte:02X}"));
            }
        } else {
            encoded.push(c);
        }
    }
    encoded
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests;
