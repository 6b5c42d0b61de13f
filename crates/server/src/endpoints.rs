//! The endpoints of all protocols, and what each needs.

use crate::policy::access::Permission;
use crate::{grpc, http, resp};

/// A route, a call or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// `http`, `grpc` or `resp`.
    pub protocol: &'static str,
    /// The method and the path, the service and the call, or the command.
    pub name: String,
    /// What it needs once there are keys.
    pub permission: Permission,
}

/// All of them: the table that requests are routed by.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let http = http::table().map(|(name, permission)| ("http", name, permission));
    let grpc = grpc::table().map(|(name, permission)| ("grpc", name, permission));
    let resp = resp::table().map(|(name, permission)| ("resp", name, permission));
    let all = http.chain(grpc).chain(resp);
    all.map(|(protocol, name, permission)| Endpoint { protocol, name, permission }).collect()
}
