//! The metrics, and how they are shown to Prometheus.

mod exposition;
mod gauges;
mod histogram;
mod keys;
mod leaders;
mod process;
mod requests;

use std::time::Duration;

use prometheus_client::registry::Registry;

pub(crate) use self::exposition::Exposition;
pub(crate) use self::gauges::{Gauges, MetricsSnapshot};
pub(crate) use self::keys::{KeyCounts, KeyMetrics};
use self::leaders::Leaders;
pub(crate) use self::requests::{Method, Protocol, Requests};

/// Labels whose values are known when the server starts.
type Labels = Vec<(&'static str, String)>;

/// Everything that is counted in one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Counted as it happens.
    pub(crate) requests: Requests,
    /// Looked up when somebody asks.
    gauges: Gauges,
    leaders: Leaders,
}

impl Metrics {
    pub(crate) fn new(scopes: &[String], keys: &KeyMetrics) -> Self {
        let mut registry = Registry::default();
        let frazil = registry.sub_registry_with_prefix("frazil");
        let requests = Requests::register(frazil, scopes, keys);
        let gauges = Gauges::register(frazil);
        let leaders = Leaders::register(frazil);
        process::register(&mut registry);
        Self { registry, requests, gauges, leaders }
    }

    /// Notes how long a renewal took.
    pub(crate) fn renewed(&self, took: Duration) {
        self.gauges.renew_seconds.duration(took);
    }

    /// The page, after what is only looked up was looked up.
    pub(crate) fn page(&self, seen: &MetricsSnapshot<'_>, exposition: Exposition) -> String {
        self.gauges.refresh(seen, &self.requests);
        self.leaders.refresh(seen);
        exposition.write(&self.registry)
    }
}
