//! The keys of the file, each with the argument that it stands for.

use std::fmt;

/// A key of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The section that it is in.
    pub(crate) section: &'static str,
    /// Its name there.
    pub(crate) name: &'static str,
    /// The argument of the command line that is the same setting.
    pub(crate) argument: &'static str,
    /// What it holds.
    pub(crate) kind: Kind,
    /// What the example file shows where there is no default.
    pub(crate) sample: Option<&'static str>,
}

/// What a key holds in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// A text such as `30s`.
    Duration,
    Number,
    NumberOrText,
    Truth,
    List,
}

impl Kind {
    /// How it is called in messages.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Text => "a text in quotes",
            Self::Duration => "a duration in quotes",
            Self::Number => "a whole number",
            Self::NumberOrText => "a whole number, or a text in quotes",
            Self::Truth => "true or false",
            Self::List => "a list of texts",
        }
    }
}

/// Displays as `section.name`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.name)
    }
}

/// The key with a path such as `lease.ttl`.
pub(crate) fn key_at(path: &str) -> &'static Key {
    let (section, name) = path.split_once('.').unwrap_or((path, ""));
    let key = KEYS.iter().find(|key| key.section == section && key.name == name);
    key.expect("the rules name keys that are in the table")
}

/// The key of an argument, if it is a setting.
pub(crate) fn key_of(argument: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.argument == argument)
}

/// The sections, in the order of the keys.
pub(crate) fn sections() -> impl Iterator<Item = &'static str> {
    KEYS.chunk_by(|one, other| one.section == other.section).map(|keys| keys[0].section)
}

/// Every setting, in the order in which it is shown.
pub(crate) const KEYS: &[Key] = &[
    key("listen", "http", "http", Kind::Text),
    key("listen", "grpc", "grpc", Kind::Text),
    key("listen", "resp", "resp", Kind::Text),
    key("listen", "admin", "admin", Kind::Text),
    key("listen", "trusted_proxies", "trusted_proxies", Kind::List).like("10.0.0.0/8,192.0.2.7"),
    key("listen", "insecure", "insecure", Kind::Truth),
    key("tls", "cert", "tls_cert", Kind::Text).like("/etc/frazil/tls/cert.pem"),
    key("tls", "key", "tls_key", Kind::Text).like("/etc/frazil/tls/key.pem"),
    key("tls", "client_ca", "tls_client_ca", Kind::Text).like("/etc/frazil/tls/clients.pem"),
    key("auth", "keys", "keys", Kind::Text).like("/etc/frazil/keys"),
    key("auth", "open_metrics", "open_metrics", Kind::Truth),
    key("store", "url", "store", Kind::Text).like("redis://127.0.0.1:6379"),
    key("store", "namespace", "namespace", Kind::Text),
    key("store", "password_file", "store_password_file", Kind::Text)
        .like("/etc/frazil/store-password"),
    key("node", "name", "node", Kind::Text).like("web1"),
    key("node", "region", "region", Kind::Text).like("eu"),
    key("node", "zone", "zone", Kind::Text).like("eu-1a"),
    key("node", "advertise", "advertise", Kind::Text).like("http://10.0.0.7:7780"),
    key("node", "layout", "layout", Kind::Text),
    key("node", "workers", "workers", Kind::Text).like("0-341"),
    key("node", "worker", "worker", Kind::Number).like("7"),
    key("node", "lanes", "lanes", Kind::NumberOrText),
    key("node", "threads", "threads", Kind::Number).like("2"),
    key("node", "scopes", "scopes", Kind::List).like("orders=strict,users"),
    key("lease", "ttl", "ttl", Kind::Duration),
    key("lease", "heartbeat", "heartbeat", Kind::Duration),
    key("lease", "outage_budget", "outage_budget", Kind::Duration),
    key("election", "ttl", "election_ttl", Kind::Duration),
    key("peer", "key_file", "peer_key_file", Kind::Text).like("/etc/frazil/peer-key"),
    key("peer", "ca", "peer_ca", Kind::Text).like("/etc/frazil/tls/nodes.pem"),
    key("clock", "rollback", "rollback", Kind::Text),
    key("clock", "max_ahead", "max_ahead", Kind::Duration),
    key("limits", "max_count", "max_count", Kind::Number),
    key("limits", "max_wait", "max_wait", Kind::Duration),
    key("limits", "max_body_bytes", "max_body_bytes", Kind::Number),
    key("limits", "max_head_bytes", "max_head_bytes", Kind::Number),
    key("limits", "max_uri_bytes", "max_uri_bytes", Kind::Number),
    key("limits", "max_headers", "max_headers", Kind::Number),
    key("limits", "max_waiting", "max_waiting", Kind::Number),
    key("limits", "max_in_flight", "max_in_flight", Kind::Number),
    key("limits", "max_connections", "max_connections", Kind::Number),
    key("limits", "max_connections_per_peer", "max_connections_per_peer", Kind::Number),
    key("limits", "max_failed_keys", "max_failed_keys", Kind::Number),
    key("limits", "max_streams", "max_streams", Kind::Number),
    key("limits", "max_resets", "max_resets", Kind::Number),
    key("limits", "max_command_bytes", "max_command_bytes", Kind::Number),
    key("limits", "max_pipeline", "max_pipeline", Kind::Number),
    key("limits", "handshake_timeout", "handshake_timeout", Kind::Duration),
    key("limits", "auth_timeout", "auth_timeout", Kind::Duration),
    key("limits", "head_timeout", "head_timeout", Kind::Duration),
    key("limits", "body_timeout", "body_timeout", Kind::Duration),
    key("limits", "write_timeout", "write_timeout", Kind::Duration),
    key("limits", "idle_timeout", "idle_timeout", Kind::Duration),
    key("limits", "resp_idle_timeout", "resp_idle_timeout", Kind::Duration),
    key("limits", "request_timeout", "request_timeout", Kind::Duration),
    key("drain", "delay", "drain_delay", Kind::Duration),
    key("drain", "timeout", "drain_timeout", Kind::Duration),
    key("drain", "refusal_limit", "refusal_limit", Kind::Duration),
    key("log", "level", "log", Kind::Text),
    key("log", "format", "log_format", Kind::Text),
];

const fn key(section: &'static str, name: &'static str, argument: &'static str, kind: Kind) -> Key {
    Key { section, name, argument, kind, sample: None }
}

impl Key {
    const fn like(self, sample: &'static str) -> Self {
        Self { sample: Some(sample), ..self }
    }
}
