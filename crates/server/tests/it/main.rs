//! The server in this process: every protocol, limits, keys, scopes, and its life from start to drain.
//!
//! One binary, so that it is linked once. What measures its process (`memory`) or counts the panics in it (`fuzz`)
//! is apart.

#[path = "../site/mod.rs"]
mod site;

mod abuse;
mod access;
mod admission;
mod compatibility;
mod crowds;
mod decode;
mod grpc;
mod http;
mod identity;
mod keys;
mod lifecycle;
mod limits;
mod nonce;
mod resp;
mod scopes;
mod unauthenticated;
