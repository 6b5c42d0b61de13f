//! A store in which an application's elections and scopes have names of their own.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::{Error, ErrorKind};
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::slot::{BadName, Group, Slot};
use crate::store::{
    Acquired, Ask, Changes, Choice, Claim, Entry, Extended, Guard, Put, Released, Store, Tenure,
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
    pub fn new(inner: Arc<dyn Store>, prefix: &str) -> Result<Self, BadName> {
        // A name of one letter must fit behind it.
        let marked = format!("{prefix}{MARK}");
        let shortest = Slot::named(Group::Elections, &format!("{marked}x"))?;
        match prefix.contains(MARK) || prefix.is_empty() {
            true => Err(BadName::of(shortest.name())),
            false => Ok(Self { inner, prefix: marked }),
        }
    }

    /// The slot's name in the store behind.
    fn inward(&self, act: &'static str, slot: &Slot) -> Result<Slot, Error> {
        match slot.group() {
            Group::Workers => Ok(slot.clone()),
            group @ (Group::Elections | Group::Scopes) => {
                Slot::named(group, &format!("{}{}", self.prefix, slot.name()))
                    .map_err(|bad| Error::new(ErrorKind::InvalidConfig, act, self, bad))
            }
        }
    }

    /// The slot's name in front, if it has one.
    fn outward(&self, slot: &Slot) -> Option<Slot> {
        match slot.group() {
            Group::Workers => Some(slot.clone()),
            group @ (Group::Elections | Group::Scopes) => {
                Slot::named(group, slot.name().strip_prefix(&self.prefix)?).ok()
            }
        }
    }

    fn inward_tenure(&self, act: &'static str, tenure: &Tenure) -> Result<Tenure, Error> {
        Ok(Tenure { slot: self.inward(act, &tenure.slot)?, ..tenure.clone() })
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

    async fn diagnose(&self, timing: &Timing) -> Result<Vec<Finding>, Error> {
        self.inner.diagnose(timing).await
    }

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        self.inner.meta().await
    }

    async fn guard(&self) -> Result<Option<Guard>, Error> {
        self.inner.guard().await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.inner.put_meta(expected, meta).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let ours = |entry: Entry| Some(Entry { slot: self.outward(&entry.slot)?, ..entry });
        Ok(self.inner.list(group).await?.into_iter().filter_map(ours).collect())
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        let (slot, version) = match &claim.choice {
            Choice::This(slot, version) => (slot, *version),
            // Only workers are chosen from.
            Choice::Any { .. } => return self.inner.acquire(claim).await,
        };
        let choice = Choice::This(self.inward("acquire", slot)?, version);
        let slot = slot.clone();
        Ok(match self.inner.acquire(&Claim { choice, ..claim.clone() }).await? {
            Acquired::Held(tenure) => Acquired::Held(Tenure { slot, ..tenure }),
            Acquired::Unsure(_, version) => Acquired::Unsure(slot, version),
            other @ (Acquired::Taken | Acquired::Full(_) | Acquired::MetaMoved) => other,
        })
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        let inward = self.inward_tenure("extend", tenure)?;
        Ok(match self.inner.extend(&inward, ask).await? {
            Extended::Held(held) => Extended::Held(Tenure { slot: tenure.slot.clone(), ..held }),
            lost @ Extended::Lost(_) => lost,
        })
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        self.inner.release(&self.inward_tenure("release", tenure)?, last).await
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        self.inner.put(&self.inward("put a record", slot)?, expected, record).await
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        // Others' changes are announced too: too many is allowed.
        self.inner.watch(group).await
    }

    async fn time(&self) -> Result<Option<UnixMs>, Error> {
        self.inner.time().await
    }
}

impl fmt::Display for Prefixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
