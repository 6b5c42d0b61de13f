//! A store whose clock is not shown, because the clock of the cases stands still or is moved.

use std::fmt;

use async_trait::async_trait;

use crate::error::Error;
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::record::{Meta, Version};
use crate::slot::{Group, Slot};
use crate::store::{
    Changes, Commit, Committed, Entry, Look, Put, Store, Vacancies, Wanted, Watched, Written,
};
use crate::timing::Timing;

/// Hides the clock of the store behind. For subjects whose store has one: the protocol refuses
/// claims whose clock is far from the store's, and the cases make such claims on purpose.
#[derive(Debug)]
pub struct WithoutClock<S>(pub S);

fn hidden(look: Look) -> Look {
    Look { clock: None, ..look }
}

#[async_trait]
impl<S: Store> Store for WithoutClock<S> {
    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    async fn diagnose(&self, timing: &Timing) -> Result<Vec<Finding>, Error> {
        self.0.diagnose(timing).await
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        self.0.read(slots).await.map(hidden)
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.0.list(group).await
    }

    async fn vacancies(&self, wanted: &Wanted) -> Result<Vacancies, Error> {
        let vacancies = self.0.vacancies(wanted).await?;
        Ok(Vacancies { look: hidden(vacancies.look), ..vacancies })
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        Ok(match self.0.commit(commit).await? {
            Committed::Conflict(look) => Committed::Conflict(hidden(look)),
            Committed::Done { index, version, expires, look } => {
                Committed::Done { index, version, expires, look: hidden(look) }
            }
        })
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.0.put_meta(expected, meta).await
    }

    async fn settle(&self, written: &Written) -> Result<bool, Error> {
        self.0.settle(written).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.0.forget(slot, version).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.0.watch(watched).await
    }

    fn is_bound_to_process(&self) -> bool {
        self.0.is_bound_to_process()
    }

    fn changes_max(&self) -> usize {
        self.0.changes_max()
    }
}

impl<S: fmt::Display> fmt::Display for WithoutClock<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
