//! The state of a server that runs.

use std::time::Duration;

use frazil_wire::Info;

use super::report::{Row, aside};
use crate::args::ServerArg;
use crate::output::Failure;
use crate::remote::Server;
use crate::words::printable;

const CHECK: &str = "server";
/// A server answers within this, or is not there. It is asked three times.
const PATIENCE: Duration = Duration::from_secs(4);

pub(super) async fn look(url: &str, args: &ServerArg) -> Vec<Row> {
    let (url, args) = (url.to_owned(), args.clone());
    aside(CHECK, move || match Server::new(&url, &args) {
        Ok(server) => judge(&server),
        Err(failure) => {
            let fix = "correct --server, --key-file, --ca, --cert or --key";
            vec![Row::fail(CHECK, said(failure), fix)]
        }
    })
    .await
}

fn judge(server: &Server) -> Vec<Row> {
    let base = server.base();
    match server.look("/livez", PATIENCE) {
        Err(failure) => {
            return vec![Row::fail(CHECK, said(failure), "frazil serve, or correct --server")];
        }
        Ok((200, _)) => {}
        Ok((status, _)) => {
            let detail =
                format!("{base} answers /livez with {status}, not as a frazil server does");
            let fix = "correct --server: https:// if that port speaks TLS";
            return vec![Row::fail(CHECK, detail, fix)];
        }
    }
    let mut rows = vec![readiness(server)];
    rows.extend(warnings(server));
    rows
}

fn readiness(server: &Server) -> Row {
    let base = server.base();
    match server.look("/readyz?verbose", PATIENCE) {
        Err(failure) => Row::fail(CHECK, said(failure), "see the server's log"),
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
fn warnings(server: &Server) -> Vec<Row> {
    let info = match server.look("/v1/info", PATIENCE) {
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
                Row::warn(CHECK, format!("it warns: {}", printable(warning)), fix)
            })
            .collect(),
        Err(401 | 403) => {
            let why = "its warnings are shown to those with a key: --key-file names ours";
            vec![Row::skipped(CHECK, why)]
        }
        Err(status) => {
            let detail = format!("/v1/info could not be read (status {status})");
            vec![Row::warn(CHECK, detail, "see the server's log")]
        }
    }
}

fn said(failure: Failure) -> String {
    match failure {
        Failure::Message(_, message) => message,
        _ => "the server could not be asked".to_owned(),
    }
}
