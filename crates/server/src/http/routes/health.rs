//! Health probes: `/livez` and `/readyz`.

use std::fmt::Write;

use frazil_wire::{ApiError, Reason};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::{Request, StatusCode};

use crate::app::Shared;
use crate::http::answer::{self, Answer};
use crate::http::origin::{self, MissingCredential};
use crate::http::query;
use crate::net::listener::Remote;
use crate::node::info;
use crate::policy::access::{Permission, bearer};
use crate::policy::keys::follow::{KeyListAge, OLD};

/// `GET /readyz`: whether clients should come here. With `?verbose`, and why: for those who may see
/// it in detail, for others in a word.
pub(crate) fn ready(
    shared: &Shared,
    remote: &Remote,
    request: &Request<Incoming>,
) -> Result<Answer, ApiError> {
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
    let text = match is_verbose {
        true if may_see_details(shared, remote, request.headers()) => details(shared),
        true => words(shared),
        false => String::new(),
    };
    Ok(answer::text(status, text + word + "\n"))
}

/// Details name the store and its files: they are for those who may read, and without keys for
/// those on the machine itself.
fn may_see_details(shared: &Shared, remote: &Remote, headers: &HeaderMap) -> bool {
    let authenticator = &shared.authenticator;
    if authenticator.keys().is_none() {
        // A proxy on this machine may ask for anybody.
        return remote.address.is_loopback() && !remote.is_proxy;
    }
    let shown = headers.get(AUTHORIZATION).and_then(|shown| bearer(shown.as_bytes()));
    let caller = match shown {
        Some(_) => authenticator.admit(remote, shown, Permission::AnyKey).ok(),
        None => authenticator
            .by_certificate(remote)
            .filter(|_| origin::check(headers, remote, MissingCredential::Key).is_ok()),
    };
    caller.is_some_and(|caller| caller.may(Permission::Read))
}

/// The lines of `details` with nothing in them that tells of the node's surroundings.
fn words(shared: &Shared) -> String {
    let info = info::info(shared);
    let mut text = String::new();
    // Writing to a string does not fail.
    for lane in &info.lanes {
        let _ = writeln!(text, "[{}] lane: {}", sign(lane.seconds_left > 0.0), lane.state);
    }
    let up = info.store.as_ref().is_some_and(|store| store.up);
    let _ = writeln!(text, "[{}] store: {}", sign(up), store_word(up));
    for _ in shared.replicas.last().iter() {
        let _ = writeln!(text, "[-] replica: not connected");
    }
    let left = info.node.issuable_seconds > 0.0;
    let _ = writeln!(text, "[{}] issuable: {}", sign(left), if left { "yes" } else { "no" });
    text += match shared.authenticator.keys().is_some() {
        true => "details are for keys with the role read\n",
        false => "details are for clients on the same machine\n",
    };
    text
}

/// A line for each lane and each missing replica, and one for what is left without the store.
fn details(shared: &Shared) -> String {
    let info = info::info(shared);
    let mut text = String::new();
    for lane in &info.lanes {
        let sign = sign(lane.seconds_left > 0.0);
        let worker = lane.worker.map_or("none".to_owned(), |worker| worker.to_string());
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "[{sign}] lane: worker {worker}, {}, {:.1} s left: {}",
            lane.state, lane.seconds_left, lane.detail
        );
    }
    let up = info.store.as_ref().is_some_and(|store| store.up);
    let _ = writeln!(text, "[{}] store: {}", sign(up), store_word(up));
    text.push_str(&keys_line(shared.stored_keys_status.age()));
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

/// How old the keys are, where they are in the store.
fn keys_line(age: KeyListAge) -> String {
    match age {
        KeyListAge::NotInStore => String::new(),
        KeyListAge::Unread => "[-] keys: not read from the store yet\n".to_owned(),
        KeyListAge::Read(age) => {
            let sign = sign(age <= OLD);
            format!("[{sign}] keys: read from the store {:.1} s ago\n", age.as_secs_f64())
        }
    }
}

const fn store_word(is_up: bool) -> &'static str {
    if is_up { "answers" } else { "does not answer" }
}

const fn sign(is_well: bool) -> char {
    if is_well { '+' } else { '-' }
}
