//! Metrics that are looked up when somebody asks for them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use frazil::coord::LeaseState;
use frazil::coord::internal::time::{boot_time, kernel_clock, unix_ms};
use frazil::coord::{Act, ErrorKind, Loss, Outcome};
use frazil::{Layout, NodeInfo};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::histogram::Histogram;
use super::{Labels, Requests};
use crate::cluster::cache::WorkerPool;
use crate::cluster::tasks::StaleCounts;
use crate::issuer::WaitStats;
use crate::node::condition::{Condition, NodeState};
use crate::policy::keys::follow::KeyListAge;

type FloatGauge = Gauge<f64, AtomicU64>;
type FloatCounter = Counter<f64, AtomicU64>;

/// A utilisation over less than this says nothing.
const RATE_SPAN_MIN: Duration = Duration::from_millis(500);

/// Seconds: a store answers within milliseconds, or is in trouble.
const RENEW_BUCKETS: [f64; 8] = [0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0];

/// The values of the server when metrics are asked for.
#[derive(Debug)]
pub(crate) struct MetricsSnapshot<'a> {
    pub(crate) condition: &'a Condition,
    pub(crate) node: Option<&'a frazil::Node>,
    pub(crate) info: Option<&'a NodeInfo>,
    pub(crate) pool: Option<WorkerPool>,
    pub(crate) wait_stats: &'a WaitStats,
    pub(crate) layout: &'a Layout,
    pub(crate) in_flight: usize,
    /// Open connections by listener.
    pub(crate) connections: [(&'static str, usize); 4],
    /// Elections: whether this node leads, and how often the leader changed.
    pub(crate) elections: &'a [(&'a str, bool, u64)],
    pub(crate) stale: StaleCounts,
    /// By address.
    pub(crate) missing_replicas: &'a [String],
    pub(crate) keys_age: KeyListAge,
}

/// Everything that is not counted with a request.
#[derive(Debug)]
pub(crate) struct Gauges {
    node_state: Family<Labels, Gauge>,
    lanes: Gauge,
    in_flight: Gauge,
    connections: Family<Labels, Gauge>,
    issuable: FloatGauge,
    horizon: FloatGauge,
    ahead: FloatGauge,
    utilization: FloatGauge,
    exhausted: Counter,
    waited: FloatCounter,
    steps: Family<Labels, Counter>,
    backwards: Counter,
    clock_offset: Family<Labels, FloatGauge>,
    clock_error: FloatGauge,
    clock_synchronized: Gauge,
    store_up: Gauge,
    missing_replicas: Family<Labels, Gauge>,
    operations: Family<Labels, Counter>,
    renewals: Family<Labels, Counter>,
    pub(super) renew_seconds: Histogram,
    losses: Family<Labels, Counter>,
    conflicts: Counter,
    workers: [Gauge; 3],
    guarantee: Family<Labels, Gauge>,
    time_exhaustion: FloatGauge,
    keys_age: FloatGauge,
    /// When the server began, in boot time.
    began: Duration,
    /// What the utilisation was last computed from: boot time and IDs issued, in one.
    last: std::sync::Mutex<(Duration, u64)>,
}

impl Gauges {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let gauges = Self {
            node_state: Family::default(),
            lanes: Gauge::default(),
            in_flight: Gauge::default(),
            connections: Family::default(),
            issuable: FloatGauge::default(),
            horizon: FloatGauge::default(),
            ahead: FloatGauge::default(),
            utilization: FloatGauge::default(),
            exhausted: Counter::default(),
            waited: FloatCounter::default(),
            steps: Family::default(),
            backwards: Counter::default(),
            clock_offset: Family::default(),
            clock_error: FloatGauge::default(),
            clock_synchronized: Gauge::default(),
            store_up: Gauge::default(),
            missing_replicas: Family::default(),
            operations: Family::default(),
            renewals: Family::default(),
            renew_seconds: Histogram::of_seconds(&RENEW_BUCKETS),
            losses: Family::default(),
            conflicts: Counter::default(),
            workers: Default::default(),
            guarantee: Family::default(),
            time_exhaustion: FloatGauge::default(),
            keys_age: FloatGauge::default(),
            began: boot_time(),
            last: std::sync::Mutex::new((boot_time(), 0)),
        };
        gauges.register_node(registry);
        gauges.register_leases(registry);
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        registry.register("build", "The version that runs", Info::new(version));
        gauges
    }

    fn register_node(&self, to: &mut Registry) {
        to.register("node_state", "1 for the node's state", self.node_state.clone());
        to.register("lanes", "Lanes in use", self.lanes.clone());
        let help = "HTTP and gRPC requests being answered";
        to.register("requests_in_flight", help, self.in_flight.clone());
        to.register("connections", "Open connections", self.connections.clone());
        let help = "Time left without the store";
        to.register("issuable_seconds", help, self.issuable.clone());
        let help = "The last time that may be stamped, of the lane that ends last";
        to.register("horizon_timestamp_seconds", help, self.horizon.clone());
        let help = "How far the latest ID may be ahead of the clock";
        to.register("ticks_ahead_seconds", help, self.ahead.clone());
        let help = "IDs issued since the last scrape by what the lanes could have issued";
        to.register("sequence_utilization_ratio", help, self.utilization.clone());
        let help = "Requests that met a used-up sequence";
        to.register("sequence_exhausted", help, self.exhausted.clone());
        let help = "Time that requests waited for IDs";
        to.register("sequence_wait_seconds", help, self.waited.clone());
        to.register("clock_steps", "Steps of the clock", self.steps.clone());
        to.register("clock_backwards", "Steps of the clock back", self.backwards.clone());
        let help = "How far the clock is from right, as the kernel knows it";
        to.register("clock_offset_seconds", help, self.clock_offset.clone());
        let help = "How far the clock is from right at the most, as the kernel knows it";
        to.register("clock_maximum_error_seconds", help, self.clock_error.clone());
        let help = "Whether a daemon keeps the clock right, as the kernel knows it";
        to.register("clock_synchronized", help, self.clock_synchronized.clone());
        let help = "When the layout's time is used up";
        to.register("time_exhaustion_timestamp_seconds", help, self.time_exhaustion.clone());
        let help = "Time since the API keys were last read from the store, or since the start";
        to.register("keys_age_seconds", help, self.keys_age.clone());
    }

    fn register_leases(&self, to: &mut Registry) {
        to.register("store_up", "Whether the store answered last time", self.store_up.clone());
        let help =
            "1 for each replica of the store that is not connected and that takeovers wait for";
        to.register("store_replicas_missing", help, self.missing_replicas.clone());
        to.register("store_operations", "Operations on the store", self.operations.clone());
        to.register("lease_renewals", "Renewals of leases", self.renewals.clone());
        let help = "How long renewals took";
        to.register("lease_renew_duration_seconds", help, self.renew_seconds.clone());
        to.register("lease_lost", "Leases lost", self.losses.clone());
        let help = "Claims of workers that somebody else was faster with";
        to.register("worker_conflicts", help, self.conflicts.clone());
        let [in_use, capacity, blocked] = &self.workers;
        to.register("workers_in_use", "Workers of the namespace that are held", in_use.clone());
        to.register("workers_capacity", "Workers of the namespace", capacity.clone());
        let help =
            "Workers that cannot be leased now: quarantined, poisoned or before their horizon";
        to.register("workers_blocked", help, blocked.clone());
        let help = "What the store promises";
        to.register("store_guarantee_info", help, self.guarantee.clone());
    }

    pub(super) fn refresh(&self, seen: &MetricsSnapshot<'_>, requests: &Requests) {
        for state in NodeState::ALL {
            let is_it = i64::from(state == seen.condition.state);
            self.node_state.get_or_create(&one("state", state.word())).set(is_it);
        }
        self.issuable.set(seen.condition.left.as_secs_f64());
        self.in_flight.set(i64::try_from(seen.in_flight).unwrap_or(i64::MAX));
        for (listener, count) in seen.connections {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.connections.get_or_create(&one("listener", listener)).set(count);
        }
        // Relaxed, here and below: statistics.
        set(&self.exhausted, seen.wait_stats.exhausted.load(Ordering::Relaxed));
        let waited = Duration::from_nanos(seen.wait_stats.waited_nanos.load(Ordering::Relaxed));
        set_seconds(&self.waited, waited);
        self.time_exhaustion.set(seconds(seen.layout.last_instant_ms()));
        let no_losses = || Loss::WORDS.iter().map(|word| (*word, 0)).collect();
        for (reason, count) in seen.node.map_or_else(no_losses, frazil::Node::losses) {
            set(&self.losses.get_or_create(&one("reason", reason)), count);
        }
        self.refresh_keys(seen.keys_age);
        self.refresh_clock();
        self.refresh_pool(seen.pool);
        self.refresh_operations(seen.node);
        self.refresh_replicas(seen.missing_replicas);
        self.refresh_info(seen.info);
        self.refresh_utilization(seen, requests);
    }

    /// Keys in a file are not followed and have no age.
    fn refresh_keys(&self, age: KeyListAge) {
        self.keys_age.set(match age {
            KeyListAge::NotInStore => 0.0,
            KeyListAge::Unread => boot_time().saturating_sub(self.began).as_secs_f64(),
            KeyListAge::Read(age) => age.as_secs_f64(),
        });
    }

    /// A kernel that does not say is one whose clock nobody keeps right.
    fn refresh_clock(&self) {
        let clock = kernel_clock();
        self.clock_synchronized.set(i64::from(clock.is_some_and(|clock| clock.is_synchronized)));
        let Some(clock) = clock else { return };
        let offset = Duration::from_nanos(clock.offset_ns.unsigned_abs()).as_secs_f64();
        let offset = if clock.offset_ns < 0 { -offset } else { offset };
        self.clock_offset.get_or_create(&one("source", "kernel")).set(offset);
        self.clock_error.set(clock.maximum_error.as_secs_f64());
    }

    fn refresh_pool(&self, pool: Option<WorkerPool>) {
        let pool = pool.unwrap_or_default();
        let [in_use, capacity, blocked] = &self.workers;
        in_use.set(pool.held.into());
        capacity.set(pool.capacity.into());
        blocked.set(pool.blocked.into());
    }

    fn refresh_operations(&self, node: Option<&frazil::Node>) {
        let mut conflicts = 0;
        for operation in node.map(frazil::Node::operations).unwrap_or_default() {
            let (act, outcome, count) = (operation.act, operation.outcome, operation.count);
            if count == 0 && !is_shown_at_zero(outcome) {
                continue;
            }
            let labels = vec![("op", act.word().to_owned()), ("result", outcome.word().to_owned())];
            set(&self.operations.get_or_create(&labels), count);
            match (act, outcome) {
                (Act::Acquire, Outcome::Conflict) => conflicts += count,
                (Act::Extend, _) => {
                    set(&self.renewals.get_or_create(&one("result", outcome.word())), count);
                }
                _ => {}
            }
        }
        set(&self.conflicts, conflicts);
    }

    /// One that is back, or that was given up, is not shown.
    fn refresh_replicas(&self, missing: &[String]) {
        self.missing_replicas.clear();
        for replica in missing {
            self.missing_replicas.get_or_create(&one("replica", replica)).set(1);
        }
    }

    fn refresh_info(&self, info: Option<&NodeInfo>) {
        let steps = info.map(|info| info.clock_steps).unwrap_or_default();
        set(&self.steps.get_or_create(&one("direction", "forward")), steps.forward);
        set(&self.steps.get_or_create(&one("direction", "back")), steps.back);
        set(&self.backwards, steps.back);
        let Some(info) = info else { return };
        let is_over = |lane: &&frazil::LaneInfo| lane.status.state == LeaseState::Released;
        let lanes = info.lanes.iter().filter(|lane| !is_over(lane)).count();
        self.lanes.set(i64::try_from(lanes).unwrap_or(i64::MAX));
        let grants = info.lanes.iter().filter_map(|lane| lane.status.grant);
        let horizon = grants.map(|grant| grant.horizon).max().unwrap_or(0);
        self.horizon.set(seconds(horizon));
        let is_up = !info.lanes.iter().any(|lane| lane.status.trouble.is_some());
        self.store_up.set(i64::from(is_up));
        let strength = info.guarantees.uniqueness.word().to_owned();
        let labels = vec![("store", info.guarantees.store.clone()), ("uniqueness", strength)];
        self.guarantee.get_or_create(&labels).set(1);
    }

    fn refresh_utilization(&self, seen: &MetricsSnapshot<'_>, requests: &Requests) {
        let (now, issued) = (boot_time(), requests.issued_in_all());
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let span = now.saturating_sub(last.0);
        if span < RATE_SPAN_MIN {
            return;
        }
        let lanes = seen.info.map_or(0, |info| info.lanes.len());
        let could = float(seen.layout.ids_per_second()) * float(lanes as u64) * span.as_secs_f64();
        let ratio = if could > 0.0 { float(issued - last.1) / could } else { 0.0 };
        self.utilization.set(ratio);
        *last = (now, issued);
        let ahead = seen.node.map_or(0, frazil::Node::last_ms).saturating_sub(unix_ms());
        self.ahead.set(seconds(ahead));
    }
}

/// Whether an outcome of store operations is shown before it occurs: those that every store has. A store that
/// is misconfigured or unsafe to use is rare, and shown from the first time on.
const fn is_shown_at_zero(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Done | Outcome::Conflict | Outcome::Failed(ErrorKind::Unavailable))
}

pub(super) fn one(name: &'static str, value: &str) -> Labels {
    vec![(name, value.to_owned())]
}

/// Counters that are kept elsewhere.
pub(super) fn set(counter: &Counter, value: u64) {
    counter.inner().store(value, Ordering::Relaxed);
}

fn set_seconds(counter: &FloatCounter, value: Duration) {
    counter.inner().store(value.as_secs_f64().to_bits(), Ordering::Relaxed);
}

fn seconds(ms: u64) -> f64 {
    float(ms) / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "shown, not counted with")]
const fn float(number: u64) -> f64 {
    number as f64
}
