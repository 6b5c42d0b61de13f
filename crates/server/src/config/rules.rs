//! The rules that the settings of a server must keep together.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use frazil::coord::{Scheme, StoreUrl};

use super::{Config, LaneCount};
use crate::keys::KeySource;
use crate::{BindError, DeclaredScope, check_scopes};

/// Bytes of a name that others see.
const NAME_BYTES_MAX: usize = 256;
/// A head is read into a buffer that is never shorter.
const HEAD_BYTES_MIN: usize = 8192;
/// Shorter ones are lost by delays alone; longer ones leave a scope without a leader for too long.
const ELECTION_TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(1);

/// Settings that do not go together, or one that cannot be.
#[derive(Debug)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// The settings, as the configuration file calls them: the first is the one to change.
    pub settings: Vec<&'static str>,
    /// What is wrong, and what to write.
    pub error: ConfigError,
}

/// What is wrong with settings.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// What keeps a server from being started.
    Bind(BindError),
    /// A name that others see is empty, too long or cannot be printed.
    Name,
    /// What is advertised is no URL.
    Advertised,
    /// Two listeners want the same address.
    SameAddress(SocketAddr, &'static str),
    /// One peer may have more connections than all together.
    PeerConnections(usize, usize),
    /// A path does not fit a head.
    PathBeyondHead(usize, usize),
    /// Heads are shorter than what they are read into.
    ShortHead,
    /// A fixed worker cannot have several lanes.
    LanesOfFixedWorker,
    /// The TTL of elections is out of bounds.
    ElectionTtl,
    /// Other nodes cannot be asked over TLS without an authority to trust.
    StrictWithoutAuthority,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(BindError::Exposed(address)) => write!(
                f,
                "{address} can be reached from other machines: TLS and API keys are both required \
                 there. Set tls.cert, tls.key and auth.keys, listen on 127.0.0.1, or say --insecure \
                 (listen.insecure = true)"
            ),
            Self::Bind(error) => error.fmt(f),
            Self::Name => {
                write!(f, "write 1 to {NAME_BYTES_MAX} bytes without control characters")
            }
            Self::Advertised => f.write_str("write a URL, as http://10.0.0.7:7780"),
            Self::SameAddress(address, other) => {
                write!(f, "{address} is taken by {other}: choose another port, or port 0")
            }
            Self::PeerConnections(of_one, of_all) => write!(
                f,
                "{of_one} of one peer are more than the {of_all} of all: lower \
                 max_connections_per_peer, or raise max_connections"
            ),
            Self::PathBeyondHead(path, head) => write!(
                f,
                "a path of {path} bytes does not fit a head of {head}: lower max_uri_bytes, or raise \
                 max_head_bytes"
            ),
            Self::ShortHead => {
                write!(f, "a head has at least {HEAD_BYTES_MIN} bytes: write that or more")
            }
            Self::LanesOfFixedWorker => f.write_str("a fixed worker is one lane: write 1"),
            Self::ElectionTtl => f.write_str("a TTL of elections is 1s to 1h"),
            Self::StrictWithoutAuthority => f.write_str(
                "a strict scope with TLS needs the authority of other nodes' certificates: set \
                 peer.ca (--peer-ca)",
            ),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

impl Config {
    /// Everything that does not go together, without a look at files, stores or the network.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        let mut problems = Problems(Vec::new());
        problems.scopes(self);
        problems.0.extend(listeners(self));
        problems.names(self);
        problems.addresses(self);
        problems.limits(self);
        if let Ok(store) = self.node.store_to_open() {
            problems.store(self, &store);
        }
        problems.0
    }

    /// The listeners that are on, by their settings.
    fn listening(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        let all = [
            ("listen.http", self.http),
            ("listen.grpc", self.grpc),
            ("listen.resp", self.resp),
            ("listen.admin", self.admin),
        ];
        all.into_iter().filter_map(|(setting, address)| Some((setting, address?)))
    }
}

/// Whoever reaches a listener gets IDs: that must be meant. Nobody administers from elsewhere without
/// a key, whatever is meant.
pub(crate) fn listeners(config: &Config) -> Vec<ConfigProblem> {
    let mut problems = Problems(Vec::new());
    if [config.http, config.grpc, config.resp].iter().all(Option::is_none) {
        problems.bind(&["listen.http", "listen.grpc", "listen.resp"], BindError::NoListener);
        return problems.0;
    }
    if let Some(admin) = config.admin.filter(is_exposed)
        && config.keys.is_none()
    {
        problems.bind(&["listen.admin", "auth.keys"], BindError::AdminWithoutKeys(admin));
        return problems.0;
    }
    if !is_guarded(config) && !config.insecure {
        for (setting, address) in config.listening().filter(|(_, address)| is_exposed(address)) {
            problems.bind(&[setting], BindError::Exposed(address));
        }
    }
    problems.0
}

/// What a strict scope needs: a store that others share, an address where they find this node, and a
/// key for them where they want one.
pub(crate) fn strict_scopes(
    config: &Config,
    store: Option<&StoreUrl>,
    is_reachable: bool,
) -> Vec<ConfigProblem> {
    let mut problems = Problems(Vec::new());
    let is_alone = |url: &&StoreUrl| matches!(url.scheme, Scheme::Memory | Scheme::Static);
    if let Some(url) = store.filter(is_alone) {
        let error = BindError::StrictAlone(url.to_string());
        problems.bind(&["node.scopes", "store.url"], error);
    }
    if !is_reachable {
        let settings = ["node.scopes", "listen.http", "node.advertise"];
        problems.bind(&settings, BindError::StrictUnreachable);
    }
    if config.keys.is_some() && config.peer_key_file.is_none() {
        let settings = ["node.scopes", "auth.keys", "peer.key_file"];
        problems.bind(&settings, BindError::StrictWithoutKey);
    }
    problems.0
}

/// Whether others than this machine reach an address.
pub(crate) fn is_exposed(address: &SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// Whether whoever reaches a listener must show a key, and nobody overhears it.
pub(crate) const fn is_guarded(config: &Config) -> bool {
    config.tls.is_some() && config.keys.is_some()
}

struct Problems(Vec<ConfigProblem>);

impl Problems {
    fn add(&mut self, settings: &[&'static str], error: ConfigError) {
        self.0.push(ConfigProblem { settings: settings.to_vec(), error });
    }

    fn bind(&mut self, settings: &[&'static str], error: BindError) {
        self.add(settings, ConfigError::Bind(error));
    }

    fn scopes(&mut self, config: &Config) {
        if let Err(error) = check_scopes(&config.scopes) {
            self.bind(&["node.scopes"], error);
        }
        if !ELECTION_TTL.contains(&config.election_ttl) {
            self.add(&["election.ttl"], ConfigError::ElectionTtl);
        }
        if !config.scopes.iter().any(DeclaredScope::is_strict) {
            return;
        }
        let store = config.node.store_to_open().ok();
        let is_found = |at: SocketAddr| !at.ip().is_unspecified() || config.advertise.is_some();
        self.0.extend(strict_scopes(config, store.as_ref(), config.http.is_some_and(is_found)));
        if config.tls.is_some() && config.peer_ca.is_none() {
            let settings = ["node.scopes", "tls.cert", "peer.ca"];
            self.add(&settings, ConfigError::StrictWithoutAuthority);
        }
    }

    /// What others see of the node is one line that can be read.
    fn names(&mut self, config: &Config) {
        let named = [
            ("node.name", Some(&config.name)),
            ("node.region", config.region.as_ref()),
            ("node.zone", config.zone.as_ref()),
            ("node.advertise", config.advertise.as_ref()),
        ];
        let is_line = |text: &str| {
            (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
        };
        let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
        for (setting, text) in named {
            match text {
                Some(text) if !is_line(text) => self.add(&[setting], ConfigError::Name),
                Some(text) if setting == "node.advertise" && !is_url(text) => {
                    self.add(&[setting], ConfigError::Advertised);
                }
                _ => {}
            }
        }
    }

    fn addresses(&mut self, config: &Config) {
        let listeners: Vec<_> = config.listening().collect();
        for (index, (setting, address)) in listeners.iter().enumerate() {
            for (other, taken) in &listeners[..index] {
                if is_same(*address, *taken) {
                    self.add(&[setting, other], ConfigError::SameAddress(*address, other));
                }
            }
        }
    }

    fn limits(&mut self, config: &Config) {
        let limits = &config.limits;
        let (of_one, of_all) = (limits.max_connections_per_peer, limits.max_connections);
        if of_one > of_all {
            let settings = ["limits.max_connections_per_peer", "limits.max_connections"];
            self.add(&settings, ConfigError::PeerConnections(of_one, of_all));
        }
        let (path, head) = (limits.max_uri_bytes, limits.max_head_bytes);
        if path > head {
            let settings = ["limits.max_uri_bytes", "limits.max_head_bytes"];
            self.add(&settings, ConfigError::PathBeyondHead(path, head));
        }
        if head < HEAD_BYTES_MIN {
            self.add(&["limits.max_head_bytes"], ConfigError::ShortHead);
        }
    }

    fn store(&mut self, config: &Config, store: &StoreUrl) {
        if store.scheme == Scheme::Static
            && let LaneCount::Fixed(2..) = config.lanes
        {
            self.add(&["node.lanes", "node.worker", "store.url"], ConfigError::LanesOfFixedWorker);
        }
        if config.keys == Some(KeySource::Store) && store.scheme == Scheme::Memory {
            self.bind(&["auth.keys", "store.url"], BindError::KeysInMemory);
        }
    }
}

/// Whether two listeners want the same place.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (is_any || one.ip() == other.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(config: &Config) -> Vec<&'static str> {
        config.problems().iter().map(|problem| problem.settings[0]).collect()
    }

    #[test]
    fn the_defaults_go_together() {
        assert_eq!(settings(&Config::default()), Vec::<&str>::new());
    }

    #[test]
    fn each_problem_names_what_to_change() {
        let mut config = Config { zone: Some("a\nb".to_owned()), ..Config::default() };
        config.limits.max_head_bytes = 100;
        config.grpc = config.http;
        config.resp = Some(([0, 0, 0, 0], 9).into());
        config.election_ttl = Duration::ZERO;
        let expected = [
            "election.ttl",
            "listen.resp",
            "node.zone",
            "listen.grpc",
            "limits.max_uri_bytes",
            "limits.max_head_bytes",
        ];
        assert_eq!(settings(&config), expected);
        config.insecure = true;
        assert!(!settings(&config).contains(&"listen.resp"), "it is meant");
    }
}
