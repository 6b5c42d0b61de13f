//! Metrics that are counted with every request.

use std::time::Duration;

use frazil_wire::Reason;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::histogram::Histogram;
use super::{KeyMetrics, Labels};
use crate::issuer::Scope;
use crate::policy::access::Caller;
use crate::policy::admission::IssuedIds;

/// Seconds: an ID takes microseconds, a wait for one up to seconds.
const DURATION_BUCKETS: [f64; 12] =
    [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0];
/// IDs of one request.
const BATCH_BUCKETS: [f64; 7] = [1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0];

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
    Resp,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::Http, Self::Grpc, Self::Resp];

    const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Resp => "resp",
        }
    }

    /// What can be asked for in it: the pairs that are shown before they occur.
    const fn methods(self) -> &'static [Method] {
        match self {
            Self::Http => &[
                Method::Next,
                Method::Decode,
                Method::Encode,
                Method::Info,
                Method::Cluster,
                Method::Elections,
                Method::Admin,
                Method::Other,
            ],
            Self::Grpc => &[Method::Next, Method::Stream, Method::Decode, Method::Info],
            Self::Resp => &[Method::Next, Method::Decode, Method::Other],
        }
    }

    /// Whether a request for IDs can fail so in it.
    const fn can_refuse_ids(self, reason: Reason) -> bool {
        match reason {
            // About decoding and about what somebody holds.
            Reason::MalformedId
            | Reason::UnknownLayout
            | Reason::UnsupportedMediaType
            | Reason::TokenStale
            | Reason::HeldByOther => false,
            Reason::MethodNotAllowed
            | Reason::NotAcceptable
            | Reason::UriTooLong
            | Reason::HeadTooLarge => matches!(self, Self::Http),
            Reason::TooLarge => !matches!(self, Self::Resp),
            _ => true,
        }
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Next,
    Stream,
    Decode,
    Encode,
    Info,
    Cluster,
    Elections,
    /// Draining, rotating, releasing.
    Admin,
    /// Probes, metrics, descriptions and what keeps connections going.
    Other,
}

impl Method {
    const COUNT: usize = Self::Other as usize + 1;

    const fn word(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Stream => "stream",
            Self::Decode => "decode",
            Self::Encode => "encode",
            Self::Info => "info",
            Self::Cluster => "cluster",
            Self::Elections => "elections",
            Self::Admin => "admin",
            Self::Other => "other",
        }
    }
}

/// Counters that are found without a search.
#[derive(Debug)]
pub(crate) struct Requests {
    all: Family<Labels, Counter>,
    /// By protocol and method, where the protocol has that.
    done: [[Option<Counter>; Method::COUNT]; Protocol::ALL.len()],
    durations: [Histogram; Protocol::ALL.len()],
    batch_size: Histogram,
    /// Without a scope first, then by scope.
    issued: [Vec<Counter>; Protocol::ALL.len()],
    /// By scope.
    forwarded: Vec<Counter>,
    keys: KeyMetrics,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry, scopes: &[String], keys: &KeyMetrics) -> Self {
        keys.register(registry);
        let all = Family::<Labels, Counter>::default();
        let counter = |protocol: Protocol, method: Method, code: &str| {
            let labels = request_labels(protocol, method, code);
            Counter::clone(&all.get_or_create(&labels))
        };
        let done = Protocol::ALL.map(|protocol| {
            for reason in Reason::ALL.iter().filter(|reason| protocol.can_refuse_ids(**reason)) {
                counter(protocol, Method::Next, reason.name());
            }
            let mut done = [const { None }; Method::COUNT];
            for method in protocol.methods() {
                done[*method as usize] = Some(counter(protocol, *method, "OK"));
            }
            done
        });
        let durations = Family::<Labels, Histogram>::new_with_constructor(|| {
            Histogram::of_seconds(&DURATION_BUCKETS)
        });
        let by_protocol = Protocol::ALL.map(|protocol| {
            let labels = vec![("protocol", protocol.word().to_owned())];
            Histogram::clone(&durations.get_or_create(&labels))
        });
        let issued = Family::<Labels, Counter>::default();
        let by_scope = Protocol::ALL.map(|protocol| {
            let names = std::iter::once("").chain(scopes.iter().map(String::as_str));
            let labels = |scope: &str| {
                vec![("protocol", protocol.word().to_owned()), ("scope", scope.to_owned())]
            };
            names.map(|name| Counter::clone(&issued.get_or_create(&labels(name)))).collect()
        });
        let batch_size = Histogram::of_numbers(&BATCH_BUCKETS);
        let forwarded = Family::<Labels, Counter>::default();
        let by_name = |name: &String| {
            Counter::clone(&forwarded.get_or_create(&vec![("scope", name.clone())]))
        };
        let forwarded_by_scope = scopes.iter().map(by_name).collect();
        registry.register("ids_issued", "IDs issued", issued);
        let help = "IDs that the leader of a strict scope issued for clients of this node";
        registry.register("ids_forwarded", help, forwarded);
        registry.register("requests", "Requests answered, by reason of failure or OK", all.clone());
        registry.register(
            "request_duration_seconds",
            "From a request to its answer; RESP counts a pipeline as one",
            durations,
        );
        registry.register("batch_size", "IDs of one request", batch_size.clone());
        Self {
            all,
            done,
            durations: by_protocol,
            batch_size,
            issued: by_scope,
            forwarded: forwarded_by_scope,
            keys: keys.clone(),
        }
    }

    /// Counts a request that was answered as wanted.
    pub(crate) fn done(&self, protocol: Protocol, method: Method, took: Duration) {
        self.done_many(protocol, method, 1);
        self.took(protocol, took);
    }

    /// Counts several of one pipeline.
    pub(crate) fn done_many(&self, protocol: Protocol, method: Method, count: u64) {
        match &self.done[protocol as usize][method as usize] {
            Some(counter) => counter.inc_by(count),
            None => self.all.get_or_create(&request_labels(protocol, method, "OK")).inc_by(count),
        };
    }

    /// Notes how long a pipeline took.
    pub(crate) fn took(&self, protocol: Protocol, took: Duration) {
        self.durations[protocol as usize].duration(took);
    }

    /// Counts a request that failed.
    pub(crate) fn failed(&self, protocol: Protocol, method: Method, reason: Reason) {
        self.all.get_or_create(&request_labels(protocol, method, reason.name())).inc();
    }

    /// Counts the IDs of one request: where they were issued, and where they were passed on. With
    /// `is_run` each is of a request of its own.
    pub(crate) fn answered(
        &self,
        protocol: Protocol,
        scope: Option<Scope>,
        issued: &IssuedIds,
        is_run: bool,
    ) {
        let count = issued.batch.len() as u64;
        match is_run {
            true => self.batch_size.number_times(1, count),
            false => self.batch_size.number(count),
        }
        match (&issued.issuing_node, scope) {
            (Some(_), Some(scope)) => drop(self.forwarded[scope.0].inc_by(count)),
            _ => self.issued(protocol, scope, count),
        }
    }

    /// Counts IDs for whoever got them, wherever they were issued.
    pub(crate) fn issued_to(&self, caller: &Caller, count: u64) {
        let counts = caller.key().and_then(|key| key.counts.get());
        counts.unwrap_or_else(|| self.keys.nobody()).issued(count);
    }

    /// Counts the IDs of one request.
    fn issued(&self, protocol: Protocol, scope: Option<Scope>, count: u64) {
        let place = scope.map_or(0, |scope| scope.0 + 1);
        self.issued[protocol as usize][place].inc_by(count);
    }

    /// IDs issued by all protocols for all scopes.
    pub(crate) fn issued_in_all(&self) -> u64 {
        self.issued.iter().flatten().map(Counter::get).sum()
    }
}

fn request_labels(protocol: Protocol, method: Method, code: &str) -> Labels {
    vec![
        ("protocol", protocol.word().to_owned()),
        ("method", method.word().to_owned()),
        ("code", code.to_owned()),
    ]
}
