//! What rows with a strict scope share.

use std::time::Duration;

use frazil_rig::wait_until;

use crate::clock;
use crate::http::ask_once;
use crate::load::Pressure;
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

pub(super) const SCOPE: &str = "orders";
/// A leader that is gone is replaced after its TTL, and what it had leased is short.
pub(super) const ANSWERS: Duration = Duration::from_secs(30);

/// Two nodes, both of which are asked for IDs of the scope alone.
pub(super) fn participants(plan: &Plan) -> Participants {
    let pressure = Pressure {
        connections: 2,
        batch: 5,
        scope: Some(SCOPE),
        pause: Duration::from_millis(10),
        ..Pressure::default()
    };
    // ZooKeeper's sessions are a second long, unless a row has it otherwise.
    let ttl = if plan.store == Kind::Zk { "1s" } else { "3s" };
    let flags = ["--scope", "orders=strict", "--election-ttl", ttl, "--max-wait", "500ms"];
    Participants {
        nodes: 2,
        pressure,
        more_flags: flags.map(str::to_owned).into(),
        ..Participants::default()
    }
}

/// The node that says that it leads the scope.
pub(super) fn leader(stage: &Stage) -> Option<usize> {
    let leads = |node: &usize| {
        let path = format!("/v1/elections/scope:{SCOPE}");
        let told = ask_once(stage.nodes[*node].endpoint.address, "GET", &path);
        let told = told.ok().and_then(|(_, body)| serde_json::from_str(&body).ok());
        told.is_some_and(|told: serde_json::Value| told["is_leader"] == true)
    };
    (0..stage.nodes.len()).find(leads)
}

/// Waits until somebody leads.
pub(super) fn some_leader(stage: &Stage, limit: Duration) -> std::io::Result<usize> {
    let mut found = None;
    wait_until("a leader of the scope", limit, || {
        found = leader(stage);
        found.is_some() || !stage.goes_on()
    })?;
    Ok(found.unwrap_or(0))
}

/// Each of these nodes answers for the scope soon after a moment, and then goes on. Plain IDs show
/// that the nodes themselves are well.
pub(super) fn answers(stage: &mut Stage, nodes: &[usize], since: Duration) {
    let mut slowest = Duration::ZERO;
    for &node in nodes {
        let took = stage.starts_within(node, since, ANSWERS);
        slowest = slowest.max(took.unwrap_or(ANSWERS));
    }
    stage.verdict.bar("the scope's first ID", slowest, ANSWERS);
    if stage.verdict.finding_count == 0 {
        let calm = clock::now();
        stage.rest(Duration::from_secs(3));
        let refusals = stage.refusals(nodes, calm);
        stage.verdict.hold("the scope goes on", refusals.failed == 0, || refusals.told(calm));
    }
    let plain = |node: &&usize| {
        ask_once(stage.nodes[**node].endpoint.address, "POST", "/v1/ids")
            .is_ok_and(|(status, _)| status == 200)
    };
    let issuing = nodes.iter().filter(plain).count() as u64;
    stage.verdict.guard("nodes that gave a plain ID", issuing, nodes.len() as u64);
}

/// Scopes are asked for few IDs at a time.
pub(super) fn judge(_: &Plan, outcomes: &mut Outcomes) {
    outcomes.verdict.guard("IDs", outcomes.counts.ids, 1000);
}
