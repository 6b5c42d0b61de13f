//! The rules that values must keep together. Each is the server's or the library's own where there is one.

use std::net::SocketAddr;

use frazil::coord::{Scheme, StoreUrl, TimingError};
use frazil::{Node, StartError};
use frazil_server::keys::KeySource;
use frazil_server::{BindError, LaneCount};

use super::problem::{Origin, Problem};
use super::server::{options, store_url, timing};
use super::{Files, Settings};

mod files;
mod scopes;

/// Bytes of a name that others see.
const NAME_BYTES_MAX: usize = 256;
/// A head is read into a buffer that is never shorter.
const HEAD_BYTES_MIN: usize = 8192;

/// Everything that does not go together.
pub(super) fn check(settings: &Settings, files: Files) -> Vec<Problem> {
    let mut findings = Findings { settings, problems: Vec::new() };
    findings.timing();
    findings.layout();
    findings.exclusions();
    findings.scopes();
    findings.tls();
    findings.exposure();
    findings.names();
    findings.addresses();
    findings.limits();
    if files == Files::Look {
        findings.files();
    }
    // With --dev the store is a directory that the server makes.
    if !settings.args.dev {
        match store_url(&settings.args) {
            Err(why) => findings.add(&["store.url"], why),
            Ok(url) => findings.store(&url, files),
        }
    }
    findings.problems
}

struct Findings<'a> {
    settings: &'a Settings,
    problems: Vec<Problem>,
}

impl Findings<'_> {
    /// Adds a problem of some keys. It is reported where somebody set one of them, the first if
    /// there are several.
    fn add(&mut self, paths: &[&str], message: impl Into<String>) {
        let origin = |path: &str| self.settings.setting(path).origin.clone();
        let is_set = |path: &&&str| origin(path) != Origin::Default;
        let first = *paths.iter().find(is_set).unwrap_or(&paths[0]);
        let others = paths.iter().filter(|path| **path != first);
        let others = others.map(|path| ((*path).to_owned(), origin(path))).collect();
        self.problems.push(Problem { others, ..Problem::new(origin(first), first, message) });
    }

    fn is_set(&self, path: &str) -> bool {
        self.settings.setting(path).texts.is_some()
    }

    /// The library names the first relation that does not hold; with that one repaired it is asked
    /// for the next.
    fn timing(&mut self) {
        let mut timing = timing(&self.settings.args);
        while let Err(bad) = timing.checked() {
            let (keys, next) = match bad {
                TimingError::HeartbeatTooLong(_) => {
                    (["lease.heartbeat", "lease.ttl"], "lower heartbeat or raise ttl")
                }
                TimingError::BudgetTooShort(_) => {
                    (["lease.outage_budget", "lease.ttl"], "raise outage_budget or lower ttl")
                }
                TimingError::BudgetTooLong(_) if timing.outage_budget >= timing.ttl => {
                    (["lease.outage_budget", "lease.ttl"], "lower outage_budget")
                }
                TimingError::BudgetTooLong(_) => {
                    (["lease.ttl", "lease.outage_budget"], "lower ttl")
                }
                _ => (["lease.ttl", "lease.heartbeat"], "raise ttl"),
            };
            self.add(&keys, format!("{bad}; {next}"));
            match bad {
                TimingError::HeartbeatTooLong(_) => timing.heartbeat = timing.ttl / 3,
                _ => return,
            }
        }
    }

    /// Each question to the library has one answer.
    fn layout(&mut self) {
        let args = &self.settings.args;
        let memory: StoreUrl = match "memory:".parse() {
            Ok(memory) => memory,
            Err(_) => return,
        };
        let node = Node::builder().store_url(memory).layout(args.layout.layout);
        if let Err(error) = node.clone().options(options(args)).check() {
            self.add(&["clock.max_ahead", "node.layout"], error.to_string());
        }
        if let Some((first, last)) = args.workers.workers
            && let Err(error) = node.clone().workers(first..=last).check()
        {
            self.add(&["node.workers", "node.layout"], error.to_string());
        }
        if let Some(worker) = args.worker
            && let Err(error) = node.workers(worker..=worker).check()
        {
            self.add(&["node.worker", "node.layout"], error.to_string());
        }
    }

    /// A fixed worker excludes what is about a pool.
    fn exclusions(&mut self) {
        if !self.is_set("node.worker") {
            return;
        }
        for other in ["store.url", "node.workers"] {
            if self.is_set(other) {
                self.add(
                    &["node.worker", other],
                    "a fixed worker is leased from nowhere: set only one of these",
                );
            }
        }
    }

    fn store(&mut self, url: &StoreUrl, files: Files) {
        if files == Files::Look {
            self.store_files(url);
        }
        let args = &self.settings.args;
        if url.scheme == Scheme::Static {
            let fixed = if self.is_set("node.worker") { "node.worker" } else { "store.url" };
            if self.is_set("node.workers") && fixed == "store.url" {
                self.add(&[fixed, "node.workers"], "static: has one worker: leave workers out");
            }
            if let LaneCount::Fixed(2..) = args.lanes {
                self.add(&["node.lanes", fixed], "a fixed worker is one lane: write 1");
            }
        }
        if args.keys == Some(KeySource::Store) && url.scheme == Scheme::Memory {
            self.add(&["auth.keys", "store.url"], BindError::KeysInMemory.to_string());
        }
        if url.hosts.is_empty() && self.is_set("store.password_file") {
            self.add(
                &["store.password_file", "store.url"],
                "only stores on servers have a password: leave it out",
            );
        }
        let node = Node::builder().store_url(url.clone()).layout(args.layout.layout);
        let timing = timing(args);
        let timing = timing.checked().unwrap_or_default();
        match node.timing(timing).check() {
            Err(error @ StartError::Timeout { .. }) => {
                self.add(
                    &["store.url", "lease.ttl"],
                    format!("{error}; lower timeout= in the URL"),
                );
            }
            Err(error @ StartError::Workers { .. }) if !self.is_set("node.worker") => {
                self.add(&["store.url", "node.layout"], error.to_string());
            }
            _ => {}
        }
    }

    /// What others see of the node is one line that can be read.
    fn names(&mut self) {
        let args = &self.settings.args;
        let named = [
            ("node.name", &args.node),
            ("node.region", &args.region),
            ("node.zone", &args.zone),
            ("node.advertise", &args.advertise),
        ];
        let mut wrong = Vec::new();
        for (path, text) in named {
            let Some(text) = text else { continue };
            if text.is_empty() || text.len() > NAME_BYTES_MAX || text.contains(char::is_control) {
                wrong.push((
                    path,
                    format!("write 1 to {NAME_BYTES_MAX} bytes without control characters"),
                ));
            } else if path == "node.advertise"
                && !(text.starts_with("http://") || text.starts_with("https://"))
            {
                wrong.push((path, "write a URL, as http://10.0.0.7:7780".to_owned()));
            }
        }
        wrong.into_iter().for_each(|(path, why)| self.add(&[path], why));
    }

    fn tls(&mut self) {
        let (cert, key) = (self.is_set("tls.cert"), self.is_set("tls.key"));
        if cert && !key {
            self.add(&["tls.cert", "tls.key"], "a certificate needs its private key: set key");
        }
        if key && !cert {
            self.add(&["tls.key", "tls.cert"], "a private key needs its certificate: set cert");
        }
        if self.is_set("tls.client_ca") && !cert {
            self.add(
                &["tls.client_ca", "tls.cert"],
                "clients show certificates over TLS alone: set cert and key",
            );
        }
    }

    /// Whoever reaches a listener gets IDs: that must be meant. Nobody administers from elsewhere
    /// without a key, whatever is meant.
    fn exposure(&mut self) {
        let listen = &self.settings.args.listen;
        if [listen.http, listen.grpc, listen.resp].iter().all(|address| address.0.is_none()) {
            let keys = ["listen.http", "listen.grpc", "listen.resp"];
            return self.add(&keys, BindError::NoListener.to_string());
        }
        let is_exposed = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
        if let Some(admin) = self.settings.args.listen.admin.0.filter(is_exposed)
            && !self.is_set("auth.keys")
        {
            let why = BindError::AdminWithoutKeys(admin).to_string();
            return self.add(&["listen.admin", "auth.keys"], why);
        }
        let is_guarded = self.is_set("tls.cert") && self.is_set("auth.keys");
        if is_guarded || self.settings.args.listen.insecure {
            return;
        }
        for (path, address) in self.listeners() {
            if is_exposed(&address) {
                let message = format!(
                    "{address} can be reached from other machines: TLS and API keys are both required \
                     there. Set tls.cert, tls.key and auth.keys, listen on 127.0.0.1, or say \
                     --insecure (listen.insecure = true)"
                );
                self.add(&[path], message);
            }
        }
    }

    fn addresses(&mut self) {
        let listeners = self.listeners();
        for (index, (path, address)) in listeners.iter().enumerate() {
            for (other, taken) in &listeners[..index] {
                if is_same(*address, *taken) {
                    let message =
                        format!("{address} is taken by {other}: choose another port, or port 0");
                    self.add(&[path, other], message);
                }
            }
        }
    }

    fn listeners(&self) -> Vec<(&'static str, SocketAddr)> {
        let listen = &self.settings.args.listen;
        let all = [
            ("listen.http", listen.http),
            ("listen.grpc", listen.grpc),
            ("listen.resp", listen.resp),
            ("listen.admin", listen.admin),
        ];
        all.into_iter().filter_map(|(path, address)| Some((path, address.0?))).collect()
    }

    fn limits(&mut self) {
        let limits = self.settings.args.limits.limits();
        if limits.max_connections_per_peer > limits.max_connections {
            self.add(
                &["limits.max_connections_per_peer", "limits.max_connections"],
                format!(
                    "{} of one peer are more than the {} of all: lower max_connections_per_peer, or \
                     raise max_connections",
                    limits.max_connections_per_peer, limits.max_connections
                ),
            );
        }
        if limits.max_uri_bytes > limits.max_head_bytes {
            self.add(
                &["limits.max_uri_bytes", "limits.max_head_bytes"],
                format!(
                    "a path of {} bytes does not fit a head of {}: lower max_uri_bytes, or raise \
                     max_head_bytes",
                    limits.max_uri_bytes, limits.max_head_bytes
                ),
            );
        }
        if limits.max_head_bytes < HEAD_BYTES_MIN {
            let message = format!("a head has at least {HEAD_BYTES_MIN} bytes: write that or more");
            self.add(&["limits.max_head_bytes"], message);
        }
    }
}

/// Whether two listeners want the same place.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (is_any || one.ip() == other.ip())
}
