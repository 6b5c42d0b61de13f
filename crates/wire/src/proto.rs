//! The gRPC messages and services, as `proto/frazil/v1/ids.proto` describes them.
//!
//! The code is generated, and kept so that nobody who builds this crate needs a compiler of protos;
//! `tests/it/generated.rs` holds it to the proto and writes it anew.
#![expect(missing_docs, reason = "generated; the proto has the comments")]
#![allow(clippy::all, clippy::pedantic, unreachable_pub, reason = "generated")]

include!("generated/frazil.v1.rs");

/// The descriptors of all messages and services, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/frazil.v1.bin");
