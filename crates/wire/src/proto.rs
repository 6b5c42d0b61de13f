//! The gRPC messages and services, as `proto/frazil/v1/ids.proto` describes them.
#![expect(missing_docs, reason = "generated; the proto has the comments")]
#![allow(clippy::all, clippy::pedantic, unreachable_pub, reason = "generated")]

tonic::include_proto!("frazil.v1");

/// The descriptors of all messages and services, for reflection.
pub const DESCRIPTORS: &[u8] = tonic::include_file_descriptor_set!("frazil.v1");
