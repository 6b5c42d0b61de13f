//! The endpoints of all protocols, and what each needs.

use crate::policy::access::Need;
use crate::{grpc, http, resp};

/// A route, a call or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `http`, `grpc` or `resp`.
    pub protocol: &'static str,
    /// The method and the path, the service and the call, or the command.
    pub name: String,
    /// What it needs once there are keys.
    pub need: Need,
}

/// All of them: the table that requests are routed by.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let http = http::table().map(|(name, need)| ("http", name, need));
    let grpc = grpc::table().map(|(name, need)| ("grpc", name, need));
    let resp = resp::table().map(|(name, need)| ("resp", name, need));
    let all = http.chain(grpc).chain(resp);
    all.map(|(protocol, name, need)| Endpoint { protocol, name, need }).collect()
}
