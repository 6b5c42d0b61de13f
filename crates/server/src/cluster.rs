//! The other nodes: what the store says of them, elections, strict scopes, and how nodes ask each other.

pub(crate) mod admin_address;
pub(crate) mod cache;
pub(crate) mod elections;
pub(crate) mod peers;
pub(crate) mod replicas;
pub(crate) mod scopes;
pub(crate) mod tasks;
