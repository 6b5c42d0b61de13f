//! Connections: listeners and their limits, TLS, proxies, and who is at the other end.

pub(crate) mod certificate;
pub(crate) mod connection_limits;
pub(crate) mod listener;
pub(crate) mod peek;
pub(crate) mod poll_on_wake;
pub(crate) mod proxies;
pub(crate) mod remote;
pub(crate) mod request_id;
pub(crate) mod serve_threads;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod unauthenticated;
