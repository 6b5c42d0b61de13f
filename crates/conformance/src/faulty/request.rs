//! Requests that write, kept to be carried out again.

use std::sync::Arc;

use frazil_coord::{Commit, Meta, Slot, Store, Version};

#[derive(Clone, Debug)]
pub(super) enum Request {
    PutMeta(Option<Version>, Meta),
    Commit(Commit),
    Forget(Slot, Version),
}

impl Request {
    /// Carries it out. Nobody hears of the reply.
    pub(super) async fn carry_out(self, store: &Arc<dyn Store>) {
        match self {
            Self::PutMeta(expected, meta) => drop(store.put_meta(expected, &meta).await),
            Self::Commit(commit) => drop(store.commit(&commit).await),
            Self::Forget(slot, version) => drop(store.forget(&slot, version).await),
        }
    }
}
