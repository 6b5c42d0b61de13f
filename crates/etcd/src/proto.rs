//! etcd's messages and services, as far as `proto/` has them.
//!
//! The code is generated, and kept so that nobody who builds this crate needs a compiler of protos;
//! `tests/it/generated.rs` holds it to the proto and writes it anew.
#![expect(missing_docs, reason = "generated; the proto has the comments")]
#![allow(clippy::all, clippy::pedantic, unreachable_pub, reason = "generated")]

pub(crate) mod etcdserverpb {
    include!("generated/etcdserverpb.rs");
}

pub(crate) mod mvccpb {
    include!("generated/mvccpb.rs");
}
