//! Requests that write, kept to be carried out again.

use std::sync::Arc;

use crate::record::{Meta, Record, UnixMs, Version};
use crate::slot::Slot;
use crate::store::{Ask, Choice, Claim, Store, Tenure};

#[derive(Clone, Debug)]
pub(super) enum Request {
    PutMeta(Option<Version>, Meta),
    Acquire(Claim),
    Extend(Tenure, Ask),
    Release(Tenure, UnixMs),
    Put(Slot, Version, Record),
}

impl Request {
    /// Whether it can be carried out more than once.
    pub(super) fn can_repeat(&self) -> bool {
        !matches!(self, Self::Acquire(Claim { choice: Choice::Any { .. }, .. }))
    }

    /// Carries it out. Nobody hears of the reply.
    pub(super) async fn carry_out(self, store: &Arc<dyn Store>) {
        match self {
            Self::PutMeta(expected, meta) => drop(store.put_meta(expected, &meta).await),
            Self::Acquire(claim) => drop(store.acquire(&claim).await),
            Self::Extend(tenure, ask) => drop(store.extend(&tenure, &ask).await),
            Self::Release(tenure, last) => drop(store.release(&tenure, last).await),
            Self::Put(slot, expected, record) => {
                drop(store.put(&slot, expected, &record).await);
            }
        }
    }
}
