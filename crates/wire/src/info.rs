//! The answer to `GET /v1/info`.

use frazil_id::Layout;
use serde::{Deserialize, Serialize};

use crate::scopes::ScopeInfo;

/// What a node is, has and can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Info {
    /// The version of the node.
    pub version: String,
    /// The namespace that it leases workers from.
    pub namespace: String,
    /// The layout of its IDs.
    pub layout: LayoutInfo,
    /// What requests may ask for.
    pub limits: Limits,
    /// The scopes that may be named.
    #[serde(default)]
    pub scopes: Vec<ScopeInfo>,
    /// The node itself.
    pub node: NodeInfo,
    /// Its lanes.
    #[serde(default)]
    pub lanes: Vec<LaneInfo>,
    /// Its clock.
    #[serde(default)]
    pub clock: ClockInfo,
    /// Its store; none while the store was not reached yet.
    #[serde(default)]
    pub store: Option<StoreInfo>,
}

impl Info {
    /// A node, its layout and its limits, and nothing else.
    #[must_use]
    pub fn new(node: NodeInfo, layout: LayoutInfo, limits: Limits) -> Self {
        Self {
            version: String::new(),
            namespace: String::new(),
            layout,
            limits,
            scopes: Vec::new(),
            node,
            lanes: Vec::new(),
            clock: ClockInfo::default(),
            store: None,
        }
    }
}

/// A layout, so that nobody needs to hard-code it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LayoutInfo {
    /// Its text.
    pub text: String,
    /// Its fingerprint, in hexadecimal.
    pub fingerprint: String,
    /// Unix milliseconds of tick 0.
    pub epoch_ms: u64,
    /// Milliseconds of a tick.
    pub tick_ms: u32,
    /// Bits of the time.
    pub time_bits: u32,
    /// Bits of the worker.
    pub worker_bits: u32,
    /// Bits of the sequence.
    pub sequence_bits: u32,
}

/// What requests may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// The most IDs of one request.
    pub max_count: u32,
    /// The longest body in bytes.
    pub max_body_bytes: u64,
    /// How long a request may wait for IDs, in milliseconds.
    pub max_wait_ms: u64,
    /// The names of the scopes that may be named.
    #[serde(default)]
    pub scopes: Vec<String>,
}

impl Limits {
    /// At most so many IDs at once; nothing else is known.
    #[must_use]
    pub const fn new(max_count: u32) -> Self {
        Self { max_count, max_body_bytes: 0, max_wait_ms: 0, scopes: Vec::new() }
    }
}

/// The node itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Its region, if it has one.
    #[serde(default)]
    pub region: Option<String>,
    /// Its zone, if it has one.
    #[serde(default)]
    pub zone: Option<String>,
    /// Where others reach it, if it says so.
    #[serde(default)]
    pub advertise: Option<String>,
    /// starting, ready, degraded, refusing, draining or stopped.
    pub state: String,
    /// Why it is not ready, if so.
    #[serde(default)]
    pub reason: Option<String>,
    /// How long it can go on without its store.
    #[serde(default)]
    pub issuable_seconds: f64,
    /// What is well now and may not be soon.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl NodeInfo {
    /// A node of which only the name is known.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            region: None,
            zone: None,
            advertise: None,
            state: String::new(),
            reason: None,
            issuable_seconds: 0.0,
            warnings: Vec::new(),
        }
    }
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaneInfo {
    /// How its lease is doing, in a word.
    pub state: String,
    /// The same in a sentence.
    #[serde(default)]
    pub detail: String,
    /// Its worker.
    #[serde(default)]
    pub worker: Option<u32>,
    /// The token of its lease, as a string.
    #[serde(default)]
    pub token: Option<String>,
    /// The last time that may be stamped.
    #[serde(default)]
    pub horizon: Option<String>,
    /// How long it can go on without the store.
    #[serde(default)]
    pub seconds_left: f64,
}

impl LaneInfo {
    /// A lane in a state.
    pub fn new(state: impl Into<String>) -> Self {
        Self {
            state: state.into(),
            detail: String::new(),
            worker: None,
            token: None,
            horizon: None,
            seconds_left: 0.0,
        }
    }
}

/// The node's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClockInfo {
    /// What it shows.
    pub time: String,
    /// How often it stepped ahead.
    pub steps_forward: u64,
    /// How often it stepped back.
    pub steps_back: u64,
}

/// The store behind a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoreInfo {
    /// Its URL, without secrets.
    pub url: String,
    /// Whether it answered last time.
    pub up: bool,
    /// What it promises.
    #[serde(default)]
    pub guarantees: Promises,
}

impl StoreInfo {
    /// A store, and whether it answers.
    pub fn new(url: impl Into<String>, up: bool) -> Self {
        Self { url: url.into(), up, guarantees: Promises::default() }
    }
}

/// What a store promises, and what voids it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Promises {
    /// How strong uniqueness is: conditional or unconditional.
    pub uniqueness: String,
    /// What uniqueness rests on.
    pub because: String,
    /// What would void the promise.
    pub voided_by: Vec<String>,
    /// What weakens it as the store is set up now.
    pub warnings: Vec<String>,
}

impl From<&Layout> for LayoutInfo {
    fn from(layout: &Layout) -> Self {
        Self {
            text: layout.to_string(),
            fingerprint: format!("{:016x}", layout.fingerprint()),
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms(),
            time_bits: layout.time_bits(),
            worker_bits: layout.worker_bits(),
            sequence_bits: layout.sequence_bits(),
        }
    }
}
