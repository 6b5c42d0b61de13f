//! How a server that runs is doing.

use std::time::Duration;

use frazil_wire::Info;
use ureq::Agent;

use super::report::{Row, aside};
use crate::words::printable;

const CHECK: &str = "server";
/// A server answers within this, or is not there.
const PATIENCE: Duration = Duration::from_secs(4);
/// Bytes of an answer: what a server says of itself has a few thousand.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Somebody who speaks HTTP.
pub(super) struct Peer {
    agent: Agent,
    base: String,
}

impl Peer {
    pub(super) fn at(base: String, patience: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(patience))
            .http_status_as_error(false)
            .proxy(None)
            .build();
        Self { agent: config.into(), base }
    }

    /// The status and the body of an answer.
    pub(super) fn get(&self, path: &str) -> Result<(u16, String), String> {
        let answer = self.agent.get(format!("{}{path}", self.base)).call();
        let mut answer = answer.map_err(|error| error.to_string())?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        Ok((answer.status().as_u16(), body.map_err(|error| error.to_string())?))
    }
}

pub(super) async fn look(url: &str) -> Vec<Row> {
    let Some(place) = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/')) else {
        let fix = "--server http://HOST:PORT: this command speaks plain HTTP";
        return vec![Row::fail(CHECK, "that is not the URL of a server", fix)];
    };
    if place.contains('@') {
        let fix = "--server http://HOST:PORT";
        return vec![Row::fail(CHECK, "the URL of a server has no user or password", fix)];
    }
    let base = format!("http://{place}");
    aside(CHECK, move || judge(&base)).await
}

fn judge(base: &str) -> Vec<Row> {
    let peer = Peer::at(base.to_owned(), PATIENCE);
    match peer.get("/livez") {
        Err(error) => {
            let detail = format!("{base} does not answer: {error}");
            return vec![Row::fail(CHECK, detail, "frazil serve, or correct --server")];
        }
        Ok((200, _)) => {}
        Ok((status, _)) => {
            let detail =
                format!("{base} answers /livez with {status}, not as a frazil server does");
            return vec![Row::fail(CHECK, detail, "correct --server")];
        }
    }
    let mut rows = vec![readiness(base, &peer)];
    rows.extend(warnings(&peer));
    rows
}

fn readiness(base: &str, peer: &Peer) -> Row {
    match peer.get("/readyz?verbose") {
        Err(error) => Row::fail(CHECK, format!("{base}/readyz: {error}"), "see the server's log"),
        Ok((status, body)) => {
            let said = body.lines().map(printable).collect::<Vec<_>>().join("; ");
            match status {
                200 => Row::ok(CHECK, format!("{base} is ready: {said}")),
                _ => Row::fail(
                    CHECK,
                    format!("{base} is not ready: {said}"),
                    "see its log, and the rows above about its store",
                ),
            }
        }
    }
}

/// What the server warns of itself.
fn warnings(peer: &Peer) -> Vec<Row> {
    let info = match peer.get("/v1/info") {
        Ok((200, body)) => serde_json::from_str::<Info>(&body).map_err(|_| 200),
        Ok((status, _)) => Err(status),
        Err(_) => Err(0),
    };
    match info {
        Ok(info) => info
            .node
            .warnings
            .iter()
            .map(|warning| {
                let fix = "frazil doctor with the flags of that server tells more";
                Row::warn(CHECK, format!("it warns: {}", printable(warning)), fix)
            })
            .collect(),
        Err(401 | 403) => vec![Row::skipped(CHECK, "its warnings are shown to those with a key")],
        Err(status) => {
            let detail = format!("/v1/info could not be read (status {status})");
            vec![Row::warn(CHECK, detail, "see the server's log")]
        }
    }
}
