//! A store in which an application's elections and scopes have names of their own.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::{Error, ErrorKind};
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::namespace::Namespace;
use crate::nonce::Nonce;
use crate::record::{Meta, Version};
use crate::replicas::ForgottenReplica;
use crate::slot::{Group, NameError, Slot};
use crate::store::{
    Act, Change, Changes, Commit, Committed, Entry, FreeSlots, Look, Put, Store, Wanted, Watched,
    Written,
};
use crate::timing::Timing;

/// Ends the prefix. No prefix contains it, so no name belongs to two prefixes.
const MARK: char = ':';

/// Lets applications share a namespace: the election or scope `NAME` is `PREFIX:NAME` in the store
/// behind, and those of other prefixes are not seen. Workers and meta are shared by all.
#[derive(Debug)]
pub struct Prefixed {
    inner: Arc<dyn Store>,
    /// With the mark at its end.
    prefix: String,
}

impl Prefixed {
    /// Puts a prefix before the names of elections and scopes.
    ///
    /// # Errors
    /// If the prefix could not be part of a name, or contains `:`.
    pub fn new(inner: Arc<dyn Store>, prefix: &str) -> Result<Self, NameError> {
        // A name of one letter must fit behind it.
        let marked = format!("{prefix}{MARK}");
        let shortest = Slot::named(Group::Elections, &format!("{marked}x"))?;
        match prefix.contains(MARK) || prefix.is_empty() {
            true => Err(NameError::of(shortest.name())),
            false => Ok(Self { inner, prefix: marked }),
        }
    }

    /// The slot's name in the store behind.
    fn inward(&self, act: Act, slot: &Slot) -> Result<Slot, Error> {
        match slot.group() {
            Group::Workers | Group::Keys => Ok(slot.clone()),
            group @ (Group::Elections | Group::Scopes) => {
                Slot::named(group, &format!("{}{}", self.prefix, slot.name()))
                    .map_err(|bad| Error::new(ErrorKind::InvalidConfig, act.word(), self, bad))
            }
        }
    }

    /// The slot's name in front, if it has one.
    fn outward(&self, slot: &Slot) -> Option<Slot> {
        match slot.group() {
            Group::Workers | Group::Keys => Some(slot.clone()),
            group @ (Group::Elections | Group::Scopes) => {
                Slot::named(group, slot.name().strip_prefix(&self.prefix)?).ok()
            }
        }
    }

    /// A look with the names in front.
    fn outward_look(&self, look: Look) -> Look {
        Look { entries: self.outward_entries(look.entries), ..look }
    }

    fn outward_entries(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let ours = |entry: Entry| Some(Entry { slot: self.outward(&entry.slot)?, ..entry });
        entries.into_iter().filter_map(ours).collect()
    }
}

#[async_trait]
impl Store for Prefixed {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn is_bound_to_process(&self) -> bool {
        self.inner.is_bound_to_process()
    }

    fn is_in_place(&self, slot: &Slot, nonce: Nonce) -> bool {
        self.inward(Act::Read, slot).is_ok_and(|slot| self.inner.is_in_place(&slot, nonce))
    }

    async fn diagnose(&self, timing: &Timing) -> Result<Vec<Finding>, Error> {
        self.inner.diagnose(timing).await
    }

    async fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Error> {
        self.inner.neighbours(most).await
    }

    fn namespace(&self) -> Option<&Namespace> {
        self.inner.namespace()
    }

    fn changes_max(&self) -> usize {
        self.inner.changes_max()
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let inward = slots.iter().map(|slot| self.inward(Act::Read, slot));
        let look = self.inner.read(&inward.collect::<Result<Vec<_>, _>>()?).await?;
        Ok(self.outward_look(look))
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        Ok(self.outward_entries(self.inner.list(group).await?))
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        // Only workers are chosen from, and they are shared.
        self.inner.free_slots(wanted).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        let inward = commit.changes.iter().map(|change| {
            let slot = self.inward(commit.act, &change.slot)?;
            Ok(Change { slot, ..change.clone() })
        });
        let changes = inward.collect::<Result<Vec<_>, Error>>()?;
        Ok(match self.inner.commit(&Commit { changes, ..commit.clone() }).await? {
            Committed::Done { index, version, expires, look } => {
                Committed::Done { index, version, expires, look: self.outward_look(look) }
            }
            Committed::Conflict(look) => Committed::Conflict(self.outward_look(look)),
        })
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.inner.put_meta(expected, meta).await
    }

    async fn settle(&self, written: &Written) -> Result<bool, Error> {
        self.inner.settle(written).await
    }

    async fn missing_replicas(&self) -> Result<Vec<String>, Error> {
        self.inner.missing_replicas().await
    }

    async fn forget_replica(&self, address: &str) -> Result<ForgottenReplica, Error> {
        self.inner.forget_replica(address).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.inner.forget(&self.inward(Act::Forget, slot)?, version).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        // Others' changes of a kind are announced too: too many is allowed.
        match watched {
            Watched::Group(_) => self.inner.watch(watched).await,
            Watched::Slot(slot) => {
                self.inner.watch(&Watched::Slot(self.inward(Act::Watch, slot)?)).await
            }
        }
    }
}

impl fmt::Display for Prefixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
