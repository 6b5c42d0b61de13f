//! The description that a node gives of itself.

use std::time::Duration;

use frazil::coord::internal::time::unix_ms;
use frazil::{LaneInfo, NodeInfo};
use frazil_wire::words::instant;
use frazil_wire::{self as wire, LayoutInfo};

use crate::app::Shared;
use crate::cluster::replicas;

/// The answer of `/v1/info`.
pub(crate) fn info(shared: &Shared) -> wire::Info {
    let node = shared.issuer.node().map(frazil::Node::info);
    let condition = shared.condition();
    let steps = node.as_ref().map(|node| node.clock_steps).unwrap_or_default();
    let mut itself = wire::NodeInfo::new(&shared.name);
    itself.region = shared.region.clone();
    itself.zone = shared.zone.clone();
    itself.advertise = shared.advertise.clone();
    itself.state = condition.state.word().to_owned();
    itself.reason = condition.reason;
    itself.issuable_seconds = seconds(condition.left);
    itself.warnings = warnings(shared, node.as_ref());
    let layout = LayoutInfo::from(shared.issuer.layout());
    let mut info = wire::Info::new(itself, layout, limits(shared));
    info.version = env!("CARGO_PKG_VERSION").to_owned();
    info.namespace = shared.namespace.clone();
    info.scopes = shared.scopes.infos();
    info.lanes = node.iter().flat_map(|node| node.lanes.iter().map(lane)).collect();
    info.clock.time = instant(unix_ms());
    info.clock.steps_forward = steps.forward;
    info.clock.steps_back = steps.back;
    info.store = node.as_ref().map(store);
    info
}

fn limits(shared: &Shared) -> wire::Limits {
    let limits = shared.issuer.limits();
    let mut said = wire::Limits::new(limits.max_count);
    said.max_body_bytes = limits.max_body_bytes as u64;
    said.max_wait_ms = u64::try_from(limits.max_wait.as_millis()).unwrap_or(u64::MAX);
    said.scopes = shared.issuer.scopes().to_vec();
    said
}

fn warnings(shared: &Shared, node: Option<&NodeInfo>) -> Vec<String> {
    let mut warnings = node.map(NodeInfo::warnings).unwrap_or_default();
    warnings.extend(replicas::warnings(shared));
    warnings.extend(shared.stored_keys_status.warning());
    warnings
}

fn lane(lane: &LaneInfo) -> wire::LaneInfo {
    let (status, grant) = (&lane.status, lane.status.grant);
    let mut info = wire::LaneInfo::new(status.state.word());
    info.detail = status.state.to_string();
    info.worker = grant.map(|grant| grant.worker);
    info.token = grant.map(|grant| grant.token.to_string());
    info.horizon = grant.map(|grant| instant(grant.horizon));
    info.seconds_left = seconds(lane.left);
    info
}

fn store(node: &NodeInfo) -> wire::StoreInfo {
    let promises = &node.guarantees;
    let is_up = !node.lanes.iter().any(|lane| lane.status.trouble.is_some());
    let mut info = wire::StoreInfo::new(&node.store, is_up);
    info.guarantees.uniqueness = promises.uniqueness.word().to_owned();
    info.guarantees.because = promises.because.clone();
    info.guarantees.voided_by = promises.voided_by.clone();
    info.guarantees.warnings = promises.warnings.clone();
    info
}

/// To the millisecond.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
