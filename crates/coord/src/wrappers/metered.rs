//! A store whose operations are counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Error, ErrorKind};
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::slot::{Group, Slot};
use crate::store::{
    Acquired, Ask, Changes, Claim, Entry, Extended, Guard, Put, Released, Store, Tenure,
};
use crate::time::boot_time;
use crate::timing::Timing;

/// Counts the operations on a store by act and outcome, and how long they took.
#[derive(Debug)]
pub struct Metered {
    inner: Arc<dyn Store>,
    /// One for each act and outcome, made at once so that counting takes no lock.
    tallies: [[Tally; Outcome::ALL.len()]; Act::ALL.len()],
}

/// How often something was done so far, and how long that took in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Declares an enumeration of labels.
macro_rules! labels {
    ($(#[$about:meta])* $name:ident { $($label:ident $word:literal $meaning:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = $meaning] $label),*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$label),*];

            /// It in a word, as a label of metrics.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$label => $word),*
                }
            }
        }
    };
}

labels! {
    /// The methods of a [`Store`] that do something.
    Act {
        Meta "meta" "Reading meta.",
        PutMeta "put_meta" "Writing meta.",
        List "list" "Listing slots.",
        Acquire "acquire" "Acquiring a slot.",
        Extend "extend" "Extending a tenure.",
        Release "release" "Releasing a tenure.",
        Put "put" "Putting a record.",
        Watch "watch" "Starting a watch.",
        Time "time" "Reading the store's clock.",
    }
}

labels! {
    /// How an act ended: its value, or the kind of its error.
    Outcome {
        Done "done" "As wanted.",
        Taken "taken" "The slot is somebody else's.",
        Full "full" "No slot can be taken.",
        MetaMoved "meta_moved" "Meta was not what the claim named.",
        Unsure "unsure" "The claim may have been carried out.",
        Lost "lost" "The tenure is over.",
        NotHeld "not_held" "The tenure was over already.",
        Conflict "conflict" "Something else was there than was expected.",
        Unavailable "unavailable" "The store cannot be reached.",
        Unknown "unknown" "No answer came.",
        Denied "denied" "The store does not let us in.",
        InvalidConfig "invalid_config" "An option makes no sense.",
        Corrupt "corrupt" "What is stored cannot be read.",
        NewerFormat "newer_format" "What is stored is of a newer version.",
        Unsafe "unsafe" "The store may forget.",
    }
}

#[derive(Debug, Default)]
struct Tally {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Metered {
    /// Counts what is done through the wrapper from now on.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, tallies: Default::default() }
    }

    /// Every pair of act and outcome that can occur, in a fixed order, those that did not yet too.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Operations> {
        let pairs = Act::ALL.iter().flat_map(|act| {
            Outcome::ALL.iter().filter(|outcome| outcome.can_end(*act)).map(|o| (*act, *o))
        });
        pairs.map(|(act, outcome)| self.operations(act, outcome)).collect()
    }

    /// How often an act ended so.
    #[must_use]
    pub fn operations(&self, act: Act, outcome: Outcome) -> Operations {
        let tally = &self.tallies[act as usize][outcome as usize];
        // Relaxed: statistics. The two may differ by an operation that is being counted.
        let (count, nanos) =
            (tally.count.load(Ordering::Relaxed), tally.nanos.load(Ordering::Relaxed));
        Operations { act, outcome, count, spent: Duration::from_nanos(nanos) }
    }

    fn tally<T>(
        &self,
        act: Act,
        began: Duration,
        result: Result<T, Error>,
        outcome: impl FnOnce(&T) -> Outcome,
    ) -> Result<T, Error> {
        let outcome = match &result {
            Ok(value) => outcome(value),
            Err(error) => Outcome::of(error.kind()),
        };
        let nanos = u64::try_from(boot_time().saturating_sub(began).as_nanos()).unwrap_or(u64::MAX);
        let tally = &self.tallies[act as usize][outcome as usize];
        // Relaxed: nothing is read by the strength of these.
        tally.count.fetch_add(1, Ordering::Relaxed);
        tally.nanos.fetch_add(nanos, Ordering::Relaxed);
        result
    }
}

impl Outcome {
    const fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::Unknown => Self::Unknown,
            ErrorKind::Denied => Self::Denied,
            ErrorKind::InvalidConfig => Self::InvalidConfig,
            ErrorKind::Corrupt => Self::Corrupt,
            ErrorKind::NewerFormat => Self::NewerFormat,
            ErrorKind::Unsafe => Self::Unsafe,
        }
    }

    /// Whether an act can end so.
    const fn can_end(self, act: Act) -> bool {
        match self {
            Self::Taken | Self::Full | Self::MetaMoved | Self::Unsure => {
                matches!(act, Act::Acquire)
            }
            Self::Lost => matches!(act, Act::Extend),
            Self::NotHeld => matches!(act, Act::Release),
            Self::Conflict => matches!(act, Act::Put | Act::PutMeta),
            _ => true,
        }
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

    async fn diagnose(&self, timing: &Timing) -> Result<Vec<Finding>, Error> {
        self.inner.diagnose(timing).await
    }

    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error> {
        let began = boot_time();
        self.tally(Act::Meta, began, self.inner.meta().await, |_| Outcome::Done)
    }

    async fn guard(&self) -> Result<Option<Guard>, Error> {
        self.inner.guard().await
    }

    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
        let began = boot_time();
        self.tally(Act::PutMeta, began, self.inner.put_meta(expected, meta).await, of_put)
    }

    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
        let began = boot_time();
        self.tally(Act::List, began, self.inner.list(group).await, |_| Outcome::Done)
    }

    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error> {
        let began = boot_time();
        self.tally(Act::Acquire, began, self.inner.acquire(claim).await, |got| match got {
            Acquired::Held(_) => Outcome::Done,
            Acquired::Taken => Outcome::Taken,
            Acquired::Full(_) => Outcome::Full,
            Acquired::MetaMoved => Outcome::MetaMoved,
            Acquired::Unsure(..) => Outcome::Unsure,
        })
    }

    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error> {
        let began = boot_time();
        self.tally(Act::Extend, began, self.inner.extend(tenure, ask).await, |got| match got {
            Extended::Held(_) => Outcome::Done,
            Extended::Lost(_) => Outcome::Lost,
        })
    }

    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error> {
        let began = boot_time();
        self.tally(Act::Release, began, self.inner.release(tenure, last).await, |got| match got {
            Released::Done => Outcome::Done,
            Released::NotHeld => Outcome::NotHeld,
        })
    }

    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error> {
        let began = boot_time();
        self.tally(Act::Put, began, self.inner.put(slot, expected, record).await, of_put)
    }

    async fn watch(&self, group: Group) -> Result<Changes, Error> {
        let began = boot_time();
        self.tally(Act::Watch, began, self.inner.watch(group).await, |_| Outcome::Done)
    }

    async fn time(&self) -> Result<Option<UnixMs>, Error> {
        let began = boot_time();
        self.tally(Act::Time, began, self.inner.time().await, |_| Outcome::Done)
    }
}

impl fmt::Display for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
