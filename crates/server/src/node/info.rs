//! The description that a node gives of itself.

use std::time::Duration;

use frazil::coord::time::unix_ms;
use frazil::{LaneInfo, NodeInfo};
use frazil_wire::words::instant;
use frazil_wire::{self as wire, LayoutInfo};

use crate::app::Shared;
use crate::cluster::replicas;

/// The answer of `/v1/info`.
pub(crate) fn info(shared: &Shared) -> wire::Info {
    let node = shared.issuer.node().map(frazil::Node::info);
    let condition = shared.condition();
    let limits = shared.issuer.limits();
    let steps = node.as_ref().map(|node| node.clock_steps).unwrap_or_default();
    wire::Info {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        namespace: shared.namespace.clone(),
        layout: LayoutInfo::from(shared.issuer.layout()),
        limits: wire::Limits {
            max_count: limits.max_count,
            max_body_bytes: limits.max_body_bytes as u64,
            max_wait_ms: u64::try_from(limits.max_wait.as_millis()).unwrap_or(u64::MAX),
            scopes: shared.issuer.scopes().to_vec(),
        },
        scopes: shared.scopes.infos(),
        node: wire::NodeInfo {
            name: shared.name.clone(),
            region: shared.region.clone(),
            zone: shared.zone.clone(),
            advertise: shared.advertise.clone(),
            state: condition.state.word().to_owned(),
            reason: condition.reason,
            issuable_seconds: seconds(condition.left),
            warnings: warnings(shared, node.as_ref()),
        },
        lanes: node.iter().flat_map(|node| node.lanes.iter().map(lane)).collect(),
        clock: wire::ClockInfo {
            time: instant(unix_ms()),
            steps_forward: steps.forward,
            steps_back: steps.back,
        },
        store: node.as_ref().map(store),
    }
}

fn warnings(shared: &Shared, node: Option<&NodeInfo>) -> Vec<String> {
    let mut warnings = node.map(NodeInfo::warnings).unwrap_or_default();
    warnings.extend(replicas::warnings(shared));
    warnings.extend(shared.stored_keys_status.warning());
    warnings
}

fn lane(lane: &LaneInfo) -> wire::LaneInfo {
    let (status, grant) = (&lane.status, lane.status.grant);
    wire::LaneInfo {
        state: status.state.word().to_owned(),
        detail: status.state.to_string(),
        worker: grant.map(|grant| grant.worker),
        token: grant.map(|grant| grant.token.to_string()),
        horizon: grant.map(|grant| instant(grant.horizon)),
        seconds_left: seconds(lane.left),
    }
}

fn store(node: &NodeInfo) -> wire::StoreInfo {
    let promises = &node.guarantees;
    wire::StoreInfo {
        url: node.store.clone(),
        up: !node.lanes.iter().any(|lane| lane.status.trouble.is_some()),
        guarantees: wire::Promises {
            uniqueness: promises.uniqueness.word().to_owned(),
            because: promises.because.clone(),
            voided_by: promises.voided_by.clone(),
            warnings: promises.warnings.clone(),
        },
    }
}

/// To the millisecond.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
