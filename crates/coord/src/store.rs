//! The contract of a store: verbs on slots, two on the namespace's meta record, its clock, and what
//! it says about itself.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::nonce::Nonce;
use crate::record::{Meta, Record, Token, UnixMs, Version, Versioned};
use crate::slot::{Group, Slot};
use crate::timing::Timing;

/// A coordination backend, bound to one namespace.
///
/// Whoever implements it applies the transitions of [`rules`](crate::rules) and makes each of
/// them one atomic compare-and-swap. What must hold is written down as tests in
/// `conformance`, which every store passes. `Display` gives the URL without secrets.
///
/// Every method ends within the store's request time-out. An error of kind
/// [`Unknown`](crate::ErrorKind::Unknown) means that the act may have been carried out or still
/// may be; any other error means that nothing was written.
#[async_trait]
pub trait Store: fmt::Debug + fmt::Display + Send + Sync {
    /// What this store promises, and what would void it.
    fn guarantees(&self) -> Guarantees;

    /// What is not as it should be with the store as it is now, for whoever looks after it: all
    /// that weakens the promises, and more where a closer look shows it. `timing`: of the leases
    /// that it is to keep. Nothing is written.
    async fn diagnose(&self, _timing: &Timing) -> Result<Vec<Finding>, Error> {
        let warnings = self.guarantees().warnings;
        Ok(warnings.into_iter().map(|warning| Finding::warning(warning, "")).collect())
    }

    /// The namespace's meta record.
    async fn meta(&self) -> Result<Option<Versioned<Meta>>, Error>;

    /// Whether the store itself lets nobody new in for a while, beside meta's quarantine and the
    /// records' horizons. For people to read: a claim finds out by itself.
    async fn guard(&self) -> Result<Option<Guard>, Error> {
        Ok(None)
    }

    /// Replaces the version of meta that was read, or creates it if `expected` is `None`.
    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error>;

    /// Every slot of a kind that was ever acquired or put.
    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error>;

    /// Takes a slot that nobody is present in, by [`rules::acquire`](crate::rules::acquire), if
    /// meta still has the version that the claim names.
    ///
    /// Repeating a claim is safe. While a slot carries the claim's nonce the answer is the same
    /// tenure, even if meta has moved since; and the version makes an outdated repetition of
    /// [`Choice::This`] fail. After an error of kind Unknown a claim must be repeated with the same
    /// nonce: another one could leak a slot that one's own presence keeps alive.
    async fn acquire(&self, claim: &Claim) -> Result<Acquired, Error>;

    /// Renews presence and raises the horizon, by [`rules::extend`](crate::rules::extend). Also
    /// after presence has lapsed, if nobody took the slot and the store can tell that no write was
    /// lost. Repeating it is safe.
    async fn extend(&self, tenure: &Tenure, ask: &Ask) -> Result<Extended, Error>;

    /// Ends a tenure, by [`rules::release`](crate::rules::release): presence ends, and the
    /// horizon comes down to `last`, the last time that was used.
    async fn release(&self, tenure: &Tenure, last: UnixMs) -> Result<Released, Error>;

    /// Writes a record that nobody is present in over the version that was read (0: it must not
    /// exist): for import and repair by an operator.
    async fn put(&self, slot: &Slot, expected: Version, record: &Record) -> Result<Put, Error>;

    /// Announces changes of a kind of slots from now on: new holders, and slots that became free.
    /// Renewals may be announced too, but should rarely be: everybody who waits wakes up for them.
    async fn watch(&self, group: Group) -> Result<Changes, Error>;

    /// Whether presence ends with the holder's process, and never by time alone.
    fn is_bound_to_process(&self) -> bool {
        false
    }

    /// The store's own clock, if it has one that can be asked.
    async fn time(&self) -> Result<Option<UnixMs>, Error> {
        Ok(None)
    }
}

/// Why and until when a store lets nobody new in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// New tenures start above this time.
    pub until: UnixMs,
    /// Why, in a sentence.
    pub reason: String,
}

/// How a compare-and-swap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Written; this is the new version.
    Done(Version),
    /// Something else is there than was expected. Nothing was written.
    Conflict,
}

/// One slot as the store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which slot.
    pub slot: Slot,
    /// The version to name when writing.
    pub version: Version,
    /// What is known of it.
    pub found: Found,
    /// Whether somebody is there.
    pub presence: Presence,
}

/// What a store knows of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Never used.
    New,
    /// It was used, and its record is gone or unreadable.
    Lost,
    /// Its record.
    Known(Record),
}

/// Whether a holder is present in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nobody is.
    Free,
    /// Somebody is, for at least this long where the store counts time.
    Held {
        /// Until presence ends unless it is renewed; `None` where it ends with the process.
        expires_in: Option<Duration>,
    },
}

/// A wish for a slot.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Which.
    pub choice: Choice,
    /// Minted for this claim; a repetition keeps it.
    pub nonce: Nonce,
    /// Who asks, for people to read.
    pub holder: String,
    /// More about who asks.
    pub info: BTreeMap<String, String>,
    /// How long presence lasts without renewal.
    pub ttl: Duration,
    /// Now, by the clock that the slot's times will come from.
    pub now: UnixMs,
    /// The horizon wanted.
    pub ask: UnixMs,
    /// Of meta: no horizon is further from now than this.
    pub window_ms: u64,
    /// Of meta: the tenure starts above this.
    pub quarantine: UnixMs,
    /// The version of meta that the two were read from.
    pub meta: Version,
}

impl Claim {
    /// A claim that nobody makes: to judge slots by the rules, at a time and under a meta record.
    #[must_use]
    pub fn to_judge(meta: &Versioned<Meta>, now: UnixMs) -> Self {
        Self {
            choice: Choice::Any {
                first: meta.value.first_worker,
                last: meta.value.last_worker,
                favourite: None,
            },
            nonce: Nonce::from_bits(0),
            holder: String::new(),
            info: BTreeMap::new(),
            ttl: Duration::ZERO,
            now,
            ask: now,
            window_ms: meta.value.window_ms,
            quarantine: meta.value.quarantine,
            meta: meta.version,
        }
    }
}

/// Which slot a claim wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This one, as it was read; version 0 if it does not exist yet.
    This(Slot, Version),
    /// Any worker of a range.
    Any {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
        /// The one to try before others, if its floor has passed.
        favourite: Option<u32>,
    },
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The slot is held.
    Held(Tenure),
    /// [`Choice::This`]: somebody is present in it, or it is not the version that was read.
    Taken,
    /// Nothing can be taken now; when that may change.
    Full(Census),
    /// Meta is not what the claim was based on. Read it again.
    MetaMoved,
    /// The request for this slot and version may have been carried out. Repeat the claim with
    /// [`Choice::This`] and the same nonce until the answer is definite; to walk on would leak a
    /// slot that one's own presence keeps alive.
    Unsure(Slot, Version),
}

/// Why a pool had nothing to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Census {
    /// Slots with somebody present.
    pub held: u32,
    /// Free slots whose floor is too far ahead of now.
    pub blocked: u32,
    /// Free slots whose floor no correct holder can have reached: see `frazil workers repair`.
    pub poisoned: u32,
    /// The lowest floor of the blocked ones.
    pub next_floor: Option<UnixMs>,
}

impl Census {
    /// Adds what was counted elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        self.held += other.held;
        self.blocked += other.blocked;
        self.poisoned += other.poisoned;
        self.next_floor = self.next_floor.into_iter().chain(other.next_floor).min();
    }
}

/// The right to a slot, as last acknowledged by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// Which slot.
    pub slot: Slot,
    /// Rises with every acquisition.
    pub token: Token,
    /// What the holder is recognised by.
    pub nonce: Nonce,
    /// Of the record, as last seen.
    pub version: Version,
    /// Only times after this may be used.
    pub floor: UnixMs,
    /// No time after this may be used.
    pub horizon: UnixMs,
    /// When presence ends by the store's clock, if it has one.
    pub expires: Option<UnixMs>,
    /// The store's clock when it answered, if it has one.
    pub store_now: Option<UnixMs>,
    /// Which history of the store acknowledged this, where histories can fork.
    pub lineage: Option<String>,
}

/// What an extension asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The horizon wanted.
    pub horizon: UnixMs,
    /// How long presence lasts without renewal.
    pub ttl: Duration,
    /// Now, by the holder's clock.
    pub now: UnixMs,
    /// Of meta: no horizon is further from now than this.
    pub window_ms: u64,
}

/// How an extension ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extended {
    /// Held on, with what is acknowledged now.
    Held(Tenure),
    /// The tenure is over.
    Lost(Loss),
}

/// Why a tenure is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Somebody else acquired the slot.
    Superseded {
        /// With this token.
        token: Token,
        /// Who.
        holder: String,
    },
    /// Somebody else acquired the slot from a store that had forgotten this tenure, and may use
    /// the same times: no more of them may be used.
    Overlapped {
        /// With this token.
        token: Token,
        /// Who.
        holder: String,
    },
    /// The slot was released under this tenure's own mark, by itself or by an operator.
    Released,
    /// The record or the namespace's meta is gone: the store has forgotten.
    Vanished,
    /// Presence lapsed, and the store cannot tell whether it lost writes since.
    Lapsed,
    /// The store went back in its own history.
    Regressed,
}

impl Loss {
    /// The word of every way of losing.
    pub const WORDS: [&'static str; 6] =
        ["superseded", "overlapped", "released", "vanished", "lapsed", "regressed"];

    /// It in a word, as a label of metrics.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Superseded { .. } => "superseded",
            Self::Overlapped { .. } => "overlapped",
            Self::Released => "released",
            Self::Vanished => "vanished",
            Self::Lapsed => "lapsed",
            Self::Regressed => "regressed",
        }
    }
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The slot is free.
    Done,
    /// The tenure was over already. Nothing was written.
    NotHeld,
}

/// Announcements that slots changed. They may be too many, never too few; the end of them means
/// that the store's connection was lost and the watch must be renewed.
#[derive(Debug)]
pub struct Changes {
    announced: mpsc::Receiver<()>,
}

/// The other end of [`Changes`], for stores.
#[derive(Clone, Debug)]
pub struct Announcer(mpsc::Sender<()>);

impl Changes {
    /// A pair of ends.
    #[must_use]
    pub fn channel() -> (Announcer, Self) {
        // One waiting announcement says as much as many.
        let (sender, announced) = mpsc::channel(1);
        (Announcer(sender), Self { announced })
    }

    /// Waits for a change. `None`: the watch is over.
    pub async fn next(&mut self) -> Option<()> {
        self.announced.recv().await
    }
}

impl Announcer {
    /// Announces a change. `false`: nobody listens any more.
    #[must_use]
    pub fn announce(&self) -> bool {
        !matches!(self.0.try_send(()), Err(mpsc::error::TrySendError::Closed(())))
    }

    /// Waits until nobody listens any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}
