//! Probes.

use std::fmt::Write;

use frazil_wire::{ApiError, Reason};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use super::answer::{self, Answer};
use super::query;
use crate::app::Shared;
use crate::self_portrait;

/// `GET /readyz`: whether clients should come here. With `?verbose`, and why.
pub(super) fn ready(shared: &Shared, request: &Request<Incoming>) -> Result<Answer, ApiError> {
    let [verbose] = query::known(request.uri(), ["verbose"])?;
    let is_verbose = match verbose.as_deref() {
        None | Some("0" | "false") => false,
        Some("" | "1" | "true") => true,
        Some(_) => {
            let detail = "verbose is there or not, or 1 or 0";
            return Err(ApiError::new(Reason::InvalidArgument, detail));
        }
    };
    let condition = shared.condition();
    let status = match condition.state.is_ready() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let word = condition.state.word();
    let text = if is_verbose { verbose_text(shared) } else { String::new() };
    Ok(answer::text(status, text + word + "\n"))
}

/// A line for each lane and each missing replica, and one for what is left without the store.
fn verbose_text(shared: &Shared) -> String {
    let info = self_portrait::info(shared);
    let mut text = String::new();
    for lane in &info.lanes {
        let sign = if lane.seconds_left > 0.0 { '+' } else { '-' };
        let worker = lane.worker.map_or("none".to_owned(), |worker| worker.to_string());
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "[{sign}] lane: worker {worker}, {}, {:.1} s left: {}",
            lane.state, lane.seconds_left, lane.detail
        );
    }
    let up = info.store.as_ref().is_some_and(|store| store.up);
    let _ =
        writeln!(text, "[{}] store: {}", sign(up), if up { "answers" } else { "does not answer" });
    for replica in shared.replicas.last().iter() {
        let _ = writeln!(
            text,
            "[-] replica {replica}: not connected, and takeovers wait for it; if it is gone for \
             good: frazil store forget-replica {replica}"
        );
    }
    let left = info.node.issuable_seconds;
    let _ = writeln!(text, "[{}] issuable: {left:.1} s left without the store", sign(left > 0.0));
    if let Some(reason) = info.node.reason {
        let _ = writeln!(text, "[-] {}", reason.replace('\n', " "));
    }
    text
}

const fn sign(is_well: bool) -> char {
    if is_well { '+' } else { '-' }
}
