//! The contract of a store: cells with versions, presence, a clock if it has one, and its history.
//!
//! A store knows no rule of leasing. What a record may become is [`rules`](crate::rules), and how
//! a slot is acquired, extended and released is [`protocol`](crate::protocol), once for all stores.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::Error;
use crate::finding::Finding;
use crate::guarantees::Guarantees;
use crate::namespace::Namespace;
use crate::nonce::Nonce;
use crate::record::{Meta, Record, UnixMs, Version, Versioned};
use crate::replicas::ForgottenReplica;
use crate::slot::{Group, Slot};
use crate::timing::Timing;
pub use crate::watching::{Announcer, Changes};

/// A coordination backend, bound to one namespace.
///
/// What must hold is written down as tests in `frazil-conformance`, which every store passes.
/// `Display` gives the URL without secrets.
///
/// Every method ends within the store's request time-out, but for [`settle`](Self::settle). An
/// error of kind [`Unknown`](crate::ErrorKind::Unknown) means that the act may have been carried
/// out or still may be; any other error means that nothing was written.
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

    /// Meta and these slots at one moment, as the majority of the store knows them. Each slot has
    /// an entry in the answer, also one that was never used.
    async fn read(&self, slots: &[Slot]) -> Result<Look, Error>;

    /// Every slot of a kind that was ever written.
    async fn list(&self, group: Group) -> Result<Vec<Entry>, Error>;

    /// Workers that look free. It may be out of date: a commit finds out. Where a commit tries more
    /// than one change, the worker that carries the wanted nonce, if it was given to this process, is
    /// always among the entries, and its entry is not out of date.
    async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error>;

    /// Writes the first change whose conditions hold, atomically, and no other.
    ///
    /// A commit of several changes whose records carry one nonce is served at most once while a
    /// slot carries that nonce: repeated, it answers with a conflict that shows that slot.
    async fn commit(&self, commit: &Commit) -> Result<Committed, Error>;

    /// Replaces the version of meta that was read, or creates it if `expected` is `None`.
    async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error>;

    /// Waits until a write that was acknowledged can no longer be lost. `false`: it may be lost
    /// for as long as anybody waits, because the store keeps nothing for sure or has begun another
    /// history since.
    async fn settle(&self, _written: &Written) -> Result<bool, Error> {
        Ok(true)
    }

    /// The servers, by address, that could take this one's place and do not have all that it
    /// acknowledged: what must settle waits for them, and nothing else does.
    async fn missing_replicas(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Lets nothing wait any longer for a server that is gone for good, for whoever uses the
    /// namespace. It counts again once it is connected.
    async fn forget_replica(&self, _address: &str) -> Result<ForgottenReplica, Error> {
        Ok(ForgottenReplica::NoneCounts)
    }

    /// Removes an election or a scope that nobody is present in, as if it had never been used.
    /// Workers are never removed. This is the bare step: call
    /// [`Leasing::forget_finished`](crate::internal::Leasing::forget_finished), which keeps tokens rising.
    async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error>;

    /// Announces changes from now on: new holders, and slots that became free. Renewals may be
    /// announced too, but should rarely be: everybody who waits wakes up for them.
    async fn watch(&self, watched: &Watched) -> Result<Changes, Error>;

    /// Whether presence ends with the holder's process, and never by time alone.
    fn is_bound_to_process(&self) -> bool {
        false
    }

    /// Whether the store in which a holder is present is still the one that newcomers find. It is
    /// cheap enough to ask before every further use of a lease; what it cannot tell is `true`.
    fn is_in_place(&self, _slot: &Slot, _nonce: Nonce) -> bool {
        true
    }

    /// The namespace that it is bound to, where it has a name.
    fn namespace(&self) -> Option<&Namespace> {
        None
    }

    /// Other namespaces of the same place, with their meta records, as far as they can be seen: at most
    /// so many, at a cost that is bounded however much else is kept there. Those that nobody may read
    /// are left out.
    async fn neighbours(&self, _most: usize) -> Result<Vec<(Namespace, Meta)>, Error> {
        Ok(Vec::new())
    }

    /// How many changes one commit can try; more are not looked at.
    fn changes_max(&self) -> usize {
        1
    }
}

/// What a store shows at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The namespace's meta record.
    pub meta: Option<Versioned<Meta>>,
    /// The slots that were asked for.
    pub entries: Vec<Entry>,
    /// The store's own clock, if it has one that can be asked.
    pub clock: Option<UnixMs>,
    /// What the store may have lost before now.
    pub history: History,
}

impl Look {
    /// The entry of a slot.
    #[must_use]
    pub fn entry(&self, slot: &Slot) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.slot == *slot)
    }

    /// The entry whose record carries a nonce.
    #[must_use]
    pub fn carrying(&self, nonce: Nonce) -> Option<(&Entry, &Record)> {
        self.entries.iter().find_map(|entry| match &entry.found {
            Found::Known(record) if record.nonce == Some(nonce) => Some((entry, record)),
            _ => None,
        })
    }
}

/// Which history of its own a store is in.
///
/// A store that may lose the end of what it acknowledged (a restart from a log that is synced
/// every second, a replica that is promoted) begins a new history whenever that may have happened.
/// A store that loses nothing has one history for ever, the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Its name. Empty where nothing that was acknowledged is ever lost.
    pub id: String,
    /// When it began, by the store's clock; 0 if nothing came before it.
    pub since: UnixMs,
    /// When a history last began that may lack what had settled before, by the store's clock and
    /// with the time for which another server may have gone on acknowledging; 0 if none did.
    pub forked: UnixMs,
    /// What was written up to this time of the store's clock, in this history, cannot be lost; with
    /// [`Store::settle`] more may be known. `None` where nothing ever settles.
    pub settled: Option<UnixMs>,
    /// Whether a later history counts on holders that use no more than what has settled and a
    /// little beyond. If not, newcomers wait until all that was ever promised has passed.
    pub is_capped: bool,
}

impl History {
    /// Whether something acknowledged may be lost, and it can be told when it no longer may.
    #[must_use]
    pub const fn settles(&self) -> bool {
        !self.id.is_empty() && self.settled.is_some()
    }
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

impl Entry {
    /// A slot that was never used.
    #[must_use]
    pub const fn unused(slot: Slot) -> Self {
        Self { slot, version: Version(0), found: Found::New, presence: Presence::Free }
    }

    /// The nonce in its record.
    #[must_use]
    pub const fn nonce(&self) -> Option<Nonce> {
        self.found.nonce()
    }
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

impl Found {
    /// What the text of a record says, if there is one. `was_used`: there is another trace of use.
    #[must_use]
    pub fn of(text: Option<&[u8]>, was_used: bool) -> Self {
        match text {
            Some(text) => serde_json::from_slice(text).map_or(Self::Lost, Self::Known),
            None if was_used => Self::Lost,
            None => Self::New,
        }
    }

    /// The nonce in the record.
    #[must_use]
    pub const fn nonce(&self) -> Option<Nonce> {
        match self {
            Self::Known(record) => record.nonce,
            Self::New | Self::Lost => None,
        }
    }

    /// Whether the horizon of all holders so far has passed: nothing suits a claim better.
    #[must_use]
    pub const fn has_passed(&self, now: UnixMs) -> bool {
        match self {
            Self::Known(record) => record.horizon <= now,
            Self::New => true,
            Self::Lost => false,
        }
    }
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

/// A question for workers that look free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The first of the range.
    pub first: u32,
    /// The last of the range.
    pub last: u32,
    /// The one to look at in any case.
    pub favourite: Option<u32>,
    /// A worker that carries it is looked at in any case. It also decides by chance where a store
    /// that does not look at all workers begins.
    pub nonce: Nonce,
    /// The time by which floors are judged: of the workers that were used, those that can be taken
    /// at this time come first.
    pub now: UnixMs,
}

/// Workers that look free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeSlots {
    /// Meta, and the workers. If all were looked at, those without an entry are unused.
    pub look: Look,
    /// Whether all workers of the range were looked at; if not, a worker without an entry may be
    /// anything.
    pub is_complete: bool,
    /// How many workers of the range are held by others, where not all were looked at.
    pub held: u32,
}

impl FreeSlots {
    /// All workers of the range were looked at.
    #[must_use]
    pub const fn of_all(look: Look) -> Self {
        Self { look, is_complete: true, held: 0 }
    }
}

/// Changes of which the first possible one is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// What it is for: messages and metrics name it.
    pub act: Act,
    /// The version that meta must have; `None` if meta does not matter.
    pub meta: Option<Version>,
    /// The history that the store must be in; `None` if that does not matter.
    pub history: Option<String>,
    /// At most [`Store::changes_max`] of them are tried.
    pub changes: Vec<Change>,
}

impl Commit {
    /// The nonce that it is served for at most once: that of several changes.
    #[must_use]
    pub fn served_once(&self) -> Option<Nonce> {
        match &self.changes[..] {
            [first, _, ..] => first.record.nonce,
            _ => None,
        }
    }
}

/// A record to be written with its presence, if the slot is still what was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which slot.
    pub slot: Slot,
    /// The version that was read; 0 if there was none.
    pub version: Version,
    /// The nonce that was read. Versions alone come back: some stores count from the beginning
    /// after a wipe.
    pub nonce: Option<Nonce>,
    /// Who may be present.
    pub present: Present,
    /// What to write. The store sets `expires` by its own clock if it has one.
    pub record: Record,
    /// What becomes of presence.
    pub presence_change: PresenceChange,
}

impl Change {
    /// Whether the slot still is what was read.
    #[must_use]
    pub fn is_as_read(&self, version: Version, found: &Found) -> bool {
        version == self.version && found.nonce() == self.nonce
    }
}

/// Who may be present in a slot for a change to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// Nobody.
    Nobody,
    /// Nobody but the holder that carries the change's nonce.
    Holder,
}

/// What becomes of the presence in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceChange {
    /// It lasts so long without renewal.
    For(Duration),
    /// It ends.
    Ended,
}

/// The methods of a [`Store`] that do something; a commit is named after what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Act {
    /// Reading meta and slots.
    Read,
    /// Listing slots.
    List,
    /// Looking for free workers.
    FreeSlots,
    /// Committing an acquisition.
    Acquire,
    /// Committing an extension.
    Extend,
    /// Committing a release.
    Release,
    /// Committing a record of an operator's.
    Put,
    /// Writing meta.
    PutMeta,
    /// Waiting until a write cannot be lost.
    Settle,
    /// Removing a slot.
    Forget,
    /// Starting a watch.
    Watch,
}

impl Act {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Read,
        Self::List,
        Self::FreeSlots,
        Self::Acquire,
        Self::Extend,
        Self::Release,
        Self::Put,
        Self::PutMeta,
        Self::Settle,
        Self::Forget,
        Self::Watch,
    ];

    /// It in a word, as messages and metrics name it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::FreeSlots => "free_slots",
            Self::Acquire => "acquire",
            Self::Extend => "extend",
            Self::Release => "release",
            Self::Put => "put",
            Self::PutMeta => "put_meta",
            Self::Settle => "settle",
            Self::Forget => "forget",
            Self::Watch => "watch",
        }
    }
}

/// How a commit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// This change was made.
    Done {
        /// Which, counted from 0.
        index: usize,
        /// The version that the record has now.
        version: Version,
        /// When presence ends by the store's clock, if it has one.
        expires: Option<UnixMs>,
        /// Meta, the clock and the history, at that moment or after it; entries may be missing.
        look: Look,
    },
    /// None was made. What is there instead, of every slot of the commit, or of the slot that the
    /// commit's nonce was served with before.
    Conflict(Look),
}

/// When and in which history something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The history.
    pub history: String,
    /// The store's clock after the write.
    pub clock: UnixMs,
}

/// How a compare-and-swap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Written; this is the new version.
    Done(Version),
    /// Something else is there than was expected. Nothing was written.
    Conflict,
}

/// What a watch announces changes of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Every slot of a kind.
    Group(Group),
    /// One slot.
    Slot(Slot),
}

impl Watched {
    /// Whether a change of a slot is to be announced.
    #[must_use]
    pub fn covers(&self, slot: &Slot) -> bool {
        match self {
            Self::Group(group) => slot.group() == *group,
            Self::Slot(watched) => slot == watched,
        }
    }

    /// The kind of slots.
    #[must_use]
    pub const fn group(&self) -> Group {
        match self {
            Self::Group(group) => *group,
            Self::Slot(slot) => slot.group(),
        }
    }
}
