//! etcd: records are keys, presence is a key that hangs on a lease, and every act is one
//! transaction that compares revisions.
//!
//! Who owns what is decided by the outcome of transactions, never by reading. The Lock and
//! Election services of etcd are not used: they can announce a leader that is none any more.

mod commit;
mod endpoints;
mod failure;
mod history;
mod keys;
mod leases;
mod neighbours;
mod remote;
mod snapshot;
mod survey;
mod watching;

use std::fmt;

use async_trait::async_trait;
use frazil_etcd::{Compare, CompareResult, RequestOp, TxnRequest};
use tokio::sync::watch;

use self::endpoints::Endpoints;
use self::failure::Failure;
use self::keys::Keys;
use self::leases::Leases;
use self::remote::{Call, Remote, RequestEffect};
use self::snapshot::{Snapshot, revision, written};
use self::survey::Survey;
use crate::Namespace;
use crate::error::Error;
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::record::{Meta, Version, json};
use crate::slot::{Group, Slot};
use crate::store::{
    Act, Changes, Commit, Committed, Entry, FreeSlots, Look, Put, Store, Wanted, Watched,
};
use crate::timing::Timing;
use crate::url::StoreUrl;

/// A namespace in an etcd cluster.
///
/// All that one value acquires with the same time to live hangs on one lease, which every
/// extension renews.
pub struct EtcdStore {
    remote: Remote,
    namespace: Namespace,
    keys: Keys,
    leases: Leases,
    survey: Survey,
    /// Dropped with the store, which ends its watches.
    alive: watch::Sender<()>,
}

impl EtcdStore {
    /// Connects to the cluster.
    ///
    /// # Errors
    /// If no member answers within the URL's time-out, if the cluster does not let us in or read
    /// the namespace, or if the URL makes no sense.
    pub async fn connect(url: &StoreUrl, namespace: &Namespace) -> Result<Self, Error> {
        let remote = Remote::new(Endpoints::new(url)?);
        let keys = Keys::new(&url.path, namespace);
        let call = remote.call("connect");
        let survey = call.end(probe(&call, &keys).await)?;
        let (alive, _) = watch::channel(());
        let namespace = namespace.clone();
        Ok(Self { remote, namespace, keys, leases: Leases::default(), survey, alive })
    }

    /// Meta and these slots as they are now.
    async fn look_at(&self, call: &Call<'_>, slots: &[Slot]) -> Result<Look, Failure> {
        let snapshot = Snapshot::of_slots(call, &self.keys, slots).await?;
        snapshot.look_at(&self.keys, slots.iter())
    }

    /// Writes if the comparisons hold, after making sure that the store has not gone back.
    async fn swap(
        &self,
        act: Act,
        compares: Vec<Compare>,
        writes: Vec<RequestOp>,
    ) -> Result<Put, Error> {
        let call = self.remote.call(act.word());
        call.end(Snapshot::of_slots(&call, &self.keys, &[]).await)?;
        let txn = TxnRequest { compare: compares, success: writes, failure: Vec::new() };
        let answer = call.end(call.transact(RequestEffect::Writes, &txn).await)?;
        Ok(if answer.succeeded { Put::Done(written(&answer)) } else { Put::Conflict })
    }
}

async fn probe(call: &Call<'_>, keys: &Keys) -> Result<Survey, Failure> {
    let (member, status) = call.find_member().await?;
    // Shows whether we may read, and where in its history the store is.
    Snapshot::of_slots(call, keys, &[]).await?;
    Ok(Survey::take(call, &member.client, status).await)
}

#[async_trait]
impl Store for EtcdStore {
    fn guarantees(&self) -> Guarantees {
        self.survey.guarantees()
    }

    async fn diagnose(&self, _timing: &Timing) -> Result<Vec<Finding>, Error> {
        let mut found = self.survey.findings(self.remote.endpoints.count());
        found.extend(survey::member_health(&self.remote.call("diagnose")).await);
        Ok(found)
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        let call = self.remote.call(Act::Read.word());
        call.end(self.look_at(&call, slots).await)
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let call = self.remote.call(Act::List.word());
        Ok(call.end(Snapshot::of_group(&call, &self.keys, group).await)?.entries())
    }

    async fn free_slots(&self, _wanted: &Wanted) -> Result<FreeSlots, Error> {
        let call = self.remote.call(Act::FreeSlots.word());
        let snapshot = call.end(Snapshot::of_group(&call, &self.keys, Group::Workers).await)?;
        call.end(snapshot.look(&self.keys)).map(FreeSlots::of_all)
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        let call = self.remote.call(commit.act.word());
        call.end(self.write(&call, commit).await)
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let (key, expected) = (self.keys.meta(), revision(expected.unwrap_or_default().0));
        let is_expected = Compare::mod_revision(&*key, CompareResult::Equal, expected);
        self.swap(Act::PutMeta, vec![is_expected], vec![RequestOp::put(key, json(meta))]).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        if slot.group() == Group::Workers {
            return Ok(Put::Conflict);
        }
        let nobody = Compare::create_revision(self.keys.own(slot), CompareResult::Equal, 0);
        let mut compares = self.at_version(slot, version);
        compares.push(nobody);
        let keys = [self.keys.record(slot), self.keys.born(slot)];
        let deletions = keys.map(RequestOp::delete);
        self.swap(Act::Forget, compares, deletions.into()).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        let call = self.remote.call(Act::Watch.word());
        call.end(watching::subscribe(&call, &self.keys, watched, self.alive.subscribe()).await)
    }

    async fn neighbours(&self, most: usize) -> Result<Vec<(Namespace, Meta)>, Error> {
        neighbours::find(&self.remote, &self.keys, &self.namespace, most).await
    }

    fn namespace(&self) -> Option<&Namespace> {
        Some(&self.namespace)
    }

    fn changes_max(&self) -> usize {
        commit::CHANGES_MAX
    }
}

impl fmt::Display for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.remote.endpoints.url.fmt(f)
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
