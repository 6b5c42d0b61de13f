//! IDs in JSON, as a client reads them that has doubles for numbers.

use std::collections::BTreeSet;
use std::io;

use crate::checker::Counts;
use crate::clock;
use crate::http::ask_once;
use crate::scenario::{Play, Scenario};
use crate::stage::{Outcomes, Participants, Plan, Stage};
use crate::store::Kind;

const COUNT: usize = 100;

pub(super) const TRAP: Scenario =
    Scenario { id: "E01", title: "IDs in JSON", stores: &Kind::ALL, play: Play::Own(run) };

fn run(plan: &Plan) -> io::Result<Outcomes> {
    let stage =
        Stage::open(plan, &Participants { nodes: 1, workers: 1, ..Participants::default() })?;
    let began = clock::now();
    let path = format!("/v1/ids?count={COUNT}");
    let (status, body) = ask_once(stage.nodes[0].endpoint.address, "POST", &path)?;
    let mut outcomes = stage.close()?;
    let reply: serde_json::Value = serde_json::from_str(&body).map_err(io::Error::other)?;
    let ids = reply["ids"].as_array().map_or(&[][..], Vec::as_slice);
    let distinct: BTreeSet<String> = ids.iter().map(as_javascript_reads).collect();
    outcomes.verdict.guard("IDs", ids.len() as u64, COUNT as u64);
    outcomes.verdict.hold("unique", distinct.len() == ids.len(), || {
        format!("{} IDs (HTTP {status}) are {} to a client with doubles", ids.len(), distinct.len())
    });
    outcomes.seconds = (clock::now() - began).as_secs_f64();
    outcomes.counts = Counts { ids: ids.len() as u64, ..outcomes.counts };
    Ok(outcomes)
}

/// A number becomes a double; a text stays what it is.
fn as_javascript_reads(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => format!("{:?}", value.as_f64()),
    }
}
