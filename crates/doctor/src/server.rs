//! The state of a server that runs.

use frazil_wire::{Info, printable};

use crate::finding::Finding;

const CHECK: &str = "server";

/// A server that is asked: the status and the text of what it answers to a path, or why it does not.
pub trait Asked {
    /// Where it is.
    fn base(&self) -> &str;

    /// Asks it once.
    ///
    /// # Errors
    /// It does not answer; the text says why.
    fn get(&self, path: &str) -> Result<(u16, String), String>;
}

/// Whether a server is ready, and what it warns of: the check `server`. Blocks as long as the server
/// takes to answer; see [`apart`](crate::apart).
#[must_use]
pub fn server(server: &impl Asked) -> Vec<Finding> {
    let base = server.base();
    match server.get("/livez") {
        Err(why) => {
            return vec![Finding::fail(CHECK, why, "frazil serve, or correct --server")];
        }
        Ok((200, _)) => {}
        Ok((status, _)) => {
            let detail =
                format!("{base} answers /livez with {status}, not as a frazil server does");
            let fix = "correct --server: https:// if that port speaks TLS";
            return vec![Finding::fail(CHECK, detail, fix)];
        }
    }
    let mut findings = vec![readiness(server)];
    findings.extend(warnings(server));
    findings
}

fn readiness(server: &impl Asked) -> Finding {
    let base = server.base();
    match server.get("/readyz?verbose") {
        Err(why) => Finding::fail(CHECK, why, "see the server's log"),
        Ok((status, body)) => {
            let said = body.lines().map(printable).collect::<Vec<_>>().join("; ");
            match status {
                200 => Finding::ok(CHECK, format!("{base} is ready: {said}")),
                _ => Finding::fail(
                    CHECK,
                    format!("{base} is not ready: {said}"),
                    "see its log, and the rows above about its store",
                ),
            }
        }
    }
}

/// What the server warns of itself.
fn warnings(server: &impl Asked) -> Vec<Finding> {
    let info = match server.get("/v1/info") {
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
                let fix = "frazil doctor with the configuration of that server tells more";
                Finding::warn(CHECK, format!("it warns: {}", printable(warning)), fix)
            })
            .collect(),
        Err(401 | 403) => {
            let why = "its warnings are shown to those with a key: --key-file names ours";
            vec![Finding::skipped(CHECK, why)]
        }
        Err(status) => {
            let detail = format!("/v1/info could not be read (status {status})");
            vec![Finding::warn(CHECK, detail, "see the server's log")]
        }
    }
}
