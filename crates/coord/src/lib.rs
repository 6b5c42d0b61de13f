//! Leases with a horizon over files, Redis, etcd and ZooKeeper.
//!
//! A [`Slot`] is a durable [`Record`] that one holder at a time may extend, and that outlives
//! every lease. A new holder starts above the horizon of all before it, so the times that
//! different holders use are disjoint whatever clocks, schedulers and networks do.
//!
//! | to | see |
//! |---|---|
//! | open a store by its URL | [`open`](fn@open), [`StoreUrl`] |
//! | know what a store promises | [`Guarantees`] |
//! | know how a lease is doing | [`LeaseStatus`] |
//! | count what a store is asked | [`Metered`] |
//! | write a store | [`Store`], what its methods take and give, and the suite in `frazil-conformance` |
//! | test without a store of one's own | [`MemoryStore`] |
//!
//! Most programs use the crate `frazil`, which keeps workers leased and issues IDs with them, or
//! `frazil-election`. The module `internal`, which these pages leave out, is for those crates: it is not
//! covered by semantic versioning, and may change in any release.

mod choose;
mod clock_step;
mod error;
mod finding;
mod guarantees;
mod keeper;
mod lease;
mod metered;
mod namespace;
mod neighbours;
mod new_namespace;
mod nonce;
mod open;
mod pool_view;
mod protocol;
mod quarantine;
mod record;
mod repair;
mod replicas;
mod rules;
mod slot;
mod slot_state;
mod store;
mod stores;
mod sync;
mod time;
mod timing;
mod transfer;
mod url;
mod watching;
mod wrong_times;

#[doc(hidden)]
pub mod internal;

// To open a store, and to know what it promises and how leases do.
pub use self::error::{Error, ErrorKind};
pub use self::finding::{Finding, Severity};
pub use self::guarantees::{Guarantees, Strength};
pub use self::keeper::{ClockSkew, Grant, Judge, LeaseState, LeaseStatus, Pool, Refusal, Waiting};
pub use self::lease::{Census, Forgotten, Loss};
pub use self::metered::{Metered, Operations, Outcome};
pub use self::namespace::{Namespace, NamespaceError};
pub use self::new_namespace::FirstUse;
pub use self::nonce::NoRandomBits;
pub use self::open::{look, open};
pub use self::record::{Token, UnixMs};
pub use self::store::Store;
pub use self::stores::{file::Copied, memory::MemoryStore};
pub use self::timing::{Timing, TimingError};
pub use self::url::{PASSWORD_VARIABLE, Scheme, Secret, StoreUrl, UrlError};

// To write a store.
pub use self::nonce::{Nonce, NonceError};
pub use self::record::{Meta, Record, Version, Versioned};
pub use self::replicas::ForgottenReplica;
pub use self::slot::{Group, NameError, Slot};
pub use self::store::{
    Act, Announcer, Change, Changes, Commit, Committed, Entry, Found, FreeSlots, History, Look,
    Presence, PresenceChange, Present, Put, Wanted, Watched, Written,
};

/// The page of the crate, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
