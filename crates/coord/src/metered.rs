//! A store whose operations are counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Error, ErrorKind};
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::namespace::Namespace;
use crate::nonce::Nonce;
use crate::record::{Meta, Version};
use crate::replicas::ForgottenReplica;
use crate::slot::{Group, Slot};
use crate::store::{
    Act, Changes, Commit, Committed, Entry, FreeSlots, Look, Put, Store, Wanted, Watched, Written,
};
use crate::time::boot_time;
use crate::timing::Timing;

/// Counts the operations on a store by act and outcome, and how long they took.
#[derive(Debug)]
pub struct Metered {
    inner: Arc<dyn Store>,
    /// One for each act and outcome, made at once so that counting takes no lock.
    counters: [[Counter; Outcome::COUNT]; Act::ALL.len()],
}

/// How often something was done so far, and how long that took in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operations {
    /// What was done.
    pub act: Act,
    /// How it ended.
    pub outcome: Outcome,
    /// How often.
    pub count: u64,
    /// How long all of them took together.
    pub spent: Duration,
}

/// How an act ended: its value, or the kind of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// As wanted.
    Done,
    /// Something else was there than was expected.
    Conflict,
    /// With an error.
    Failed(ErrorKind),
}

#[derive(Debug, Default)]
struct Counter {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Metered {
    /// Counts what is done through the wrapper from now on.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, counters: Default::default() }
    }

    /// Every pair of act and outcome that can occur, in a fixed order, those that did not yet too.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Operations> {
        let pairs = Act::ALL.iter().flat_map(|act| {
            Outcome::all().filter(|outcome| outcome.can_end(*act)).map(|outcome| (*act, outcome))
        });
        pairs.map(|(act, outcome)| self.operations(act, outcome)).collect()
    }

    /// How often an act ended so.
    #[must_use]
    pub fn operations(&self, act: Act, outcome: Outcome) -> Operations {
        let counter = &self.counters[act as usize][outcome.index()];
        // Relaxed: statistics. The two may differ by an operation that is being counted.
        let (count, nanos) =
            (counter.count.load(Ordering::Relaxed), counter.nanos.load(Ordering::Relaxed));
        Operations { act, outcome, count, spent: Duration::from_nanos(nanos) }
    }

    async fn count<T>(
        &self,
        act: Act,
        request: impl Future<Output = Result<T, Error>>,
        outcome: impl FnOnce(&T) -> Outcome,
    ) -> Result<T, Error> {
        let began = boot_time();
        let result = request.await;
        let outcome = match &result {
            Ok(value) => outcome(value),
            Err(error) => Outcome::Failed(error.kind()),
        };
        let nanos = u64::try_from(boot_time().saturating_sub(began).as_nanos()).unwrap_or(u64::MAX);
        let counter = &self.counters[act as usize][outcome.index()];
        // Relaxed: nothing is read by the strength of these.
        counter.count.fetch_add(1, Ordering::Relaxed);
        counter.nanos.fetch_add(nanos, Ordering::Relaxed);
        result
    }
}

impl Outcome {
    const COUNT: usize = 2 + ErrorKind::ALL.len();

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Done, Self::Conflict]
            .into_iter()
            .chain(ErrorKind::ALL.iter().copied().map(Self::Failed))
    }

    const fn index(self) -> usize {
        match self {
            Self::Done => 0,
            Self::Conflict => 1,
            Self::Failed(kind) => 2 + kind as usize,
        }
    }

    /// It in a word, as a label of metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Conflict => "conflict",
            // Labels have no hyphens.
            Self::Failed(ErrorKind::InvalidConfig) => "invalid_config",
            Self::Failed(ErrorKind::NewerFormat) => "newer_format",
            Self::Failed(kind) => kind.word(),
        }
    }

    /// Whether an act can end so.
    const fn can_end(self, act: Act) -> bool {
        let reads = matches!(act, Act::Read | Act::List | Act::FreeSlots | Act::Watch);
        !(reads && matches!(self, Self::Conflict))
    }
}

fn of_put(put: &Put) -> Outcome {
    match put {
        Put::Done(_) => Outcome::Done,
        Put::Conflict => Outcome::Conflict,
    }
}

#[async_trait]
impl Store for Metered {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn is_bound_to_process(&self) -> bool {
        self.inner.is_bound_to_process()
    }

    fn is_in_place(&self, slot: &Slot, nonce: Nonce) -> bool {
        self.inner.is_in_place(slot, nonce)
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

    async fn diagnose(&self, timing: &Timing) -> Result<Vec<Finding>, Error> {
        self.inner.diagnose(timing).await
    }

    async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
        self.count(Act::Read, self.inner.read(slots), |_| Outcome::Done).await
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        self.count(Act::List, self.inner.list(group), |_| Outcome::Done).await
    }

    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
        self.count(Act::FreeSlots, self.inner.free_slots(wanted), |_| Outcome::Done).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
        self.count(commit.act, self.inner.commit(commit), |got| match got {
            Committed::Done { .. } => Outcome::Done,
            Committed::Conflict(_) => Outcome::Conflict,
        })
        .await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        self.count(Act::PutMeta, self.inner.put_meta(expected, meta), of_put).await
    }

    async fn settle(&self, written: &Written) -> Result<bool, Error> {
        let outcome = |settled: &bool| if *settled { Outcome::Done } else { Outcome::Conflict };
        self.count(Act::Settle, self.inner.settle(written), outcome).await
    }

    async fn missing_replicas(&self) -> Result<Vec<String>, Error> {
        self.inner.missing_replicas().await
    }

    async fn forget_replica(&self, address: &str) -> Result<ForgottenReplica, Error> {
        self.inner.forget_replica(address).await
    }

    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
        self.count(Act::Forget, self.inner.forget(slot, version), of_put).await
    }

    async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
        self.count(Act::Watch, self.inner.watch(watched), |_| Outcome::Done).await
    }
}

impl fmt::Display for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
