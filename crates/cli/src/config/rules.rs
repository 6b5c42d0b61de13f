//! The rules of the settings: those of the server and of the library, which know most of them, and
//! those about what was written, with the keys that each is about.

use frazil::coord::{Scheme, StoreUrl, TimingError};
use frazil::{Node, StartError};
use frazil_server::{DeclaredScope, TlsFiles};

use super::problem::{Origin, Problem};
use super::server::{config_of, options, store_url, timing};
use super::{Files, Settings};

mod files;

/// Everything that does not go together.
pub(super) fn check(settings: &Settings, files: Files) -> Vec<Problem> {
    let mut findings = Findings { settings, problems: Vec::new() };
    findings.timing();
    findings.layout();
    findings.exclusions();
    findings.tls();
    // With --dev the store is a directory that the server makes.
    let store = match settings.args.dev {
        true => Ok(StoreUrl::file("dev")),
        false => store_url(&settings.args),
    };
    findings.server(store.as_ref().ok());
    if files == Files::Look {
        findings.files();
    }
    match store {
        Err(why) => findings.add(&["store.url"], why),
        Ok(url) if !settings.args.dev => findings.store(&url, files),
        Ok(_) => {}
    }
    findings.problems
}

struct Findings<'a> {
    settings: &'a Settings,
    problems: Vec<Problem>,
}

impl Findings<'_> {
    /// Adds a problem of some keys. It is reported where somebody set one of them, the first if
    /// there are several; the others are named if they have a value.
    fn add(&mut self, paths: &[&str], message: impl Into<String>) {
        let origin = |path: &str| self.settings.setting(path).origin.clone();
        let is_set = |path: &&&str| origin(path) != Origin::Default;
        let first = *paths.iter().find(is_set).unwrap_or(&paths[0]);
        let others = paths.iter().filter(|path| **path != first && self.is_set(path));
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
            self.add(&["clock.max_ahead", "node.layout"], format!("{error:#}"));
        }
        if let Some((first, last)) = args.workers.workers
            && let Err(error) = node.clone().workers(first..=last).check()
        {
            self.add(&["node.workers", "node.layout"], format!("{error:#}"));
        }
        if let Some(worker) = args.worker
            && let Err(error) = node.workers(worker..=worker).check()
        {
            self.add(&["node.worker", "node.layout"], format!("{error:#}"));
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
                    format!("{error:#}; lower timeout= in the URL"),
                );
            }
            Err(error @ StartError::Workers { .. }) if !self.is_set("node.worker") => {
                self.add(&["store.url", "node.layout"], format!("{error:#}"));
            }
            _ => {}
        }
    }

    /// What the server itself refuses.
    fn server(&mut self, store: Option<&StoreUrl>) {
        let args = &self.settings.args;
        let (mut scopes, mut wrong) = (Vec::new(), Vec::new());
        for text in &args.scopes {
            match DeclaredScope::parse(text) {
                Ok(scope) => scopes.push(scope),
                Err(error) => wrong.push(format!("{error:#}")),
            }
        }
        let mut config = config_of(args, store.cloned(), scopes);
        // A certificate whose key was forgotten is another problem.
        config.tls = args.tls.tls_cert.clone().map(|cert| {
            TlsFiles::new(cert, args.tls.tls_key.clone().unwrap_or_default())
                .with_client_ca(args.tls.tls_client_ca.clone())
        });
        wrong.into_iter().for_each(|why| self.add(&["node.scopes"], why));
        for problem in config.problems() {
            self.add(&problem.settings, format!("{:#}", problem.error));
        }
    }

    fn tls(&mut self) {
        let (cert, key) = (self.is_set("tls.cert"), self.is_set("tls.key"));
        if cert && !key {
            self.add(
                &["tls.cert", "tls.key"],
                "a certificate needs its private key: set --tls-key (tls.key)",
            );
        }
        if key && !cert {
            self.add(
                &["tls.key", "tls.cert"],
                "a private key needs its certificate: set --tls-cert (tls.cert)",
            );
        }
        if self.is_set("tls.client_ca") && !cert {
            self.add(
                &["tls.client_ca", "tls.cert"],
                "clients show certificates over TLS alone: set --tls-cert and --tls-key",
            );
        }
    }
}
