//! etcd: records are keys, presence is a key that hangs on a lease, and every act is one
//! transaction that compares revisions.
//!
//! Who owns what is decided by the outcome of transactions, never by reading. The Lock and
//! Election services of etcd are not used: they can announce a leader that is none any more.

mod acquire;
mod doors;
mod failure;
mod history;
mod keys;
mod leases;
mod remote;
mod roll_call;
mod sight;
mod survey;
mod tenure;
mod watching;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use serde::Serialize;
use tokio::sync::watch;

use self::doors::Doors;
use self::failure::Failure;
use self::keys::Keys;
use self::leases::Leases;
use self::remote::{Call, Nature, Remote};
use self::sight::{Sight, revision, written};
use self::survey::Survey;
use crate::Namespace;
use crate::error::Error;
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::lease::{Acquired, Ask, Claim, Extended, Released, Tenure};
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::slot::{Group, Slot};
use crate::store::{Changes, Entry, Put, Store};
use crate::timing::Timing;
use crate::url::StoreUrl;

/// A namespace in an etcd cluster.
///
/// All that one value acquires with the same time to live hangs on one lease, which every
/// extension renews.
pub struct EtcdStore {
    remote: Remote,
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
        let remote = Remote::new(Doors::new(url)?);
        let keys = Keys::new(&url.path, namespace);
        let call = remote.call("connect");
        let survey = greet(&call, &keys).await;
        let survey = survey.map_err(|failure| call.error(Nature::Reads, &failure))?;
        let (alive, _) = watch::channel(());
        Ok(Self { remote, keys, leases: Leases::default(), survey, alive })
    }

    async fn look(
        &self,
        call: &Call<'_>,
        sight: impl Future<Output = Result<Sight, Failure>>,
    ) -> Result<Sight, Error> {
        sight.await.map_err(|failure| call.error(Nature::Reads, &failure))
    }

    /// The lease for presence with this time to live.
    async fn lease(&self, call: &Call<'_>, ttl: Duration) -> Result<i64, Error> {
        let fresh = self.leases.fresh(call, ttl).await;
        fresh.map_err(|failure| call.error(Nature::Reads, &failure))
    }

    /// Writes if the comparisons hold, after making sure that the store has not gone back.
    async fn swap<const C: usize, const W: usize>(
        &self,
        act: &'static str,
        compares: [Compare; C],
        writes: [TxnOp; W],
    ) -> Result<Put, Error> {
        let call = self.remote.call(act);
        self.look(&call, Sight::of_meta(&call, &self.keys)).await?;
        let txn = Txn::new().when(compares).and_then(writes);
        match call.transact(Nature::Writes, txn).await {
            Ok(answer) if answer.succeeded() => Ok(Put::Done(written(&answer))),
            Ok(_) => Ok(Put::Conflict),
            Err(failure) => Err(call.error(Nature::Writes, &failure)),
        }
    }
}

async fn greet(call: &Call<'_>, keys: &Keys) -> Result<Survey, Failure> {
    let status = call.find_member().await?;
    // Shows whether we may read, and where in its history the store is.
    Sight::of_meta(call, keys).await?;
    Ok(Survey::take(call, &status).await)
}

#[async_trait]
impl Store for EtcdStore {
    fn guarantees(&self) -> Guarantees {
        self.survey.guarantees()
    }

    async fn diagnose(&self, _timing: &Timing) -> Result<Vec<Finding>, Error> {
        let mut found = self.survey.findings(self.remote.doors.count());
        found.extend(roll_call::findings(&self.remote.call("diagnose")).await);
        Ok(found)
    }

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        let call = self.remote.call("read meta");
        let sight = self.look(&call, Sight::of_meta(&call, &self.keys)).await?;
        let removal = format_args!("etcdctl del {}", self.keys.meta()).to_string();
        sight.meta(&call).map_err(|error| error.with_way_out(removal))
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let key = self.keys.meta();
        let expected = revision(expected.unwrap_or_default());
        let compare = Compare::mod_revision(&*key, CompareOp::Equal, expected);
        self.swap("write meta", [compare], [TxnOp::put(key, json(meta), None)]).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let call = self.remote.call("list");
        Ok(self.look(&call, Sight::of_group(&call, &self.keys, group)).await?.entries())
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        self.take(&self.remote.call("acquire"), claim).await
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        self.hold_on(&self.remote.call("extend"), tenure, ask).await
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        self.let_go(&self.remote.call("release"), tenure, last).await
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        let (key, own) = (self.keys.record(slot), self.keys.own(slot));
        let compares = [
            Compare::mod_revision(&*key, CompareOp::Equal, revision(expected)),
            Compare::create_revision(own, CompareOp::Equal, 0),
        ];
        let writes = [
            TxnOp::put(key, json(record), None),
            TxnOp::put(self.keys.born(slot), record.token.to_string(), None),
        ];
        self.swap("put a record", compares, writes).await
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        let call = self.remote.call("watch");
        let changes = watching::subscribe(&call, &self.keys, group, self.alive.subscribe()).await;
        changes.map_err(|failure| call.error(Nature::Reads, &failure))
    }
}

impl fmt::Display for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.remote.doors, f)
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Records and meta as text.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts, numbers and maps with text keys are JSON")
}
