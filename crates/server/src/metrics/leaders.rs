//! Metrics about leaders, and what the leader of the cluster found.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Labels;
use super::gauges::{MetricsSnapshot, one, set};

/// What is looked up of elections when somebody asks.
#[derive(Debug, Default)]
pub(super) struct Leaders {
    leader: Family<Labels, Gauge>,
    transitions: Family<Labels, Counter>,
    stale: Family<Labels, Gauge>,
}

impl Leaders {
    pub(super) fn register(to: &mut Registry) -> Self {
        let leaders = Self::default();
        let help = "Whether this node leads the election; scopes are called scope:NAME";
        to.register("leader", help, leaders.leader.clone());
        let help = "Leaders of the election that this node has seen";
        to.register("leader_transitions", help, leaders.transitions.clone());
        let help = "Workers that nobody uses and that are not simply free, as the leader of the \
                    cluster sees them";
        to.register("stale_slots", help, leaders.stale.clone());
        leaders
    }

    pub(super) fn refresh(&self, seen: &MetricsSnapshot<'_>) {
        for (election, leads, transitions) in seen.elections {
            let labels = one("election", election);
            self.leader.get_or_create(&labels).set(i64::from(*leads));
            set(&self.transitions.get_or_create(&labels), *transitions);
        }
        for (kind, count) in seen.stale.by_kind() {
            self.stale.get_or_create(&one("kind", kind)).set(count.into());
        }
    }
}
