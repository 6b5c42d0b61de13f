//! Scopes, and what strict ones need.

use std::time::Duration;

use frazil::coord::{Scheme, StoreUrl};
use frazil_server::{BindError, DeclaredScope};

use super::super::server::store_url;
use super::Findings;

/// Shorter ones are lost by delays alone; longer ones leave a scope without a leader for too long.
const TTL: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(1);

impl Findings<'_> {
    pub(super) fn scopes(&mut self) {
        let parsed = self.settings.args.scopes.iter().map(|text| DeclaredScope::parse(text));
        let (mut scopes, mut wrong) = (Vec::new(), Vec::new());
        for outcome in parsed {
            match outcome {
                Ok(scope) => scopes.push(scope),
                Err(error) => wrong.push(error.to_string()),
            }
        }
        if wrong.is_empty()
            && let Err(error) = frazil_server::check_scopes(&scopes)
        {
            wrong.push(error.to_string());
        }
        for why in wrong {
            self.add(&["node.scopes"], why);
        }
        if !TTL.contains(&self.settings.args.election_ttl) {
            self.add(&["election.ttl"], "a TTL of elections is 1s to 1h");
        }
        if scopes.iter().any(DeclaredScope::is_strict) {
            self.strict_scopes();
        }
    }

    fn strict_scopes(&mut self) {
        let args = &self.settings.args;
        let store = if args.dev { None } else { store_url(args).ok() };
        let alone =
            store.filter(|url: &StoreUrl| matches!(url.scheme, Scheme::Memory | Scheme::Static));
        if let Some(url) = alone {
            let why = BindError::StrictAlone(url.to_string()).to_string();
            self.add(&["node.scopes", "store.url"], why);
        }
        let is_reachable = args
            .listen
            .http
            .0
            .is_some_and(|address| !address.ip().is_unspecified() || args.advertise.is_some());
        if !is_reachable {
            let why = BindError::StrictUnreachable.to_string();
            self.add(&["node.scopes", "listen.http", "node.advertise"], why);
        }
        if self.is_set("auth.keys") && !self.is_set("peer.key_file") {
            let why = BindError::StrictWithoutKey.to_string();
            self.add(&["node.scopes", "auth.keys", "peer.key_file"], why);
        }
        if self.is_set("tls.cert") && !self.is_set("peer.ca") {
            let why = "a strict scope with TLS needs the authority of other nodes' certificates: \
                       set peer.ca (--peer-ca)";
            self.add(&["node.scopes", "tls.cert", "peer.ca"], why);
        }
    }
}
