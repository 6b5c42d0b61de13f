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
//! | write a store | [`Store`], and the suite in `frazil-conformance` |
//!
//! Most programs use the crate `frazil`, which keeps workers leased and issues IDs with them, or
//! `frazil-election`. What is hidden from these pages is for those crates, and may change in any
//! release.

mod choose;
mod clock_step;
mod error;
mod finding;
mod guarantees;
mod lease;
mod metered;
mod namespace;
mod neighbours;
mod new_namespace;
mod nonce;
mod open;
mod pool_view;
mod record;
mod replicas;
mod slot;
mod slot_state;
mod store;
mod sync;
mod timing;
mod url;
mod watching;

pub mod stores;

// The lease engine, for the other crates of Frazil.
#[doc(hidden)]
pub mod keeper;
#[doc(hidden)]
pub mod protocol;
#[doc(hidden)]
pub mod quarantine;
#[doc(hidden)]
pub mod repair;
#[doc(hidden)]
pub mod rules;
#[doc(hidden)]
pub mod time;
#[doc(hidden)]
pub mod transfer;
#[doc(hidden)]
pub mod wrong_times;

pub use self::error::{Error, ErrorKind};
pub use self::finding::{Finding, Severity};
pub use self::guarantees::{Guarantees, Strength};
pub use self::keeper::{
    ClockSkew, Grant, Judge, LeaseState, LeaseStatus, Pool, Refusal, StoreTime, Waiting,
};
pub use self::lease::{Census, Forgotten, Loss, Settling, Tenure};
pub use self::metered::{Metered, Operations, Outcome};
pub use self::namespace::{Namespace, NamespaceError};
pub use self::new_namespace::FirstUse;
pub use self::nonce::{NoRandomBits, Nonce, NonceError};
pub use self::open::{look, open};
pub use self::record::{FORMAT, Meta, Record, Token, UnixMs, Version, Versioned};
pub use self::replicas::ForgottenReplica;
pub use self::slot::{Group, NameError, Slot};
pub use self::store::{
    Act, Announcer, Change, Changes, Commit, Committed, Entry, Found, FreeSlots, History, Look,
    Presence, PresenceChange, Present, Put, Store, Wanted, Watched, Written,
};
pub use self::timing::{Timing, TimingError};
pub use self::url::{PASSWORD_VARIABLE, PemFiles, Scheme, Secret, StoreUrl, UrlError, duration};

// What operators' commands and the other crates of Frazil need of it.
#[doc(hidden)]
pub use self::{
    error::write_causes,
    lease::{Acquired, Ask, Choice, Claim, Extended, Guard, Released},
    namespace::etcd_prefix,
    neighbours::{Neighbour, neighbours, warn_of_neighbours},
    new_namespace::NewNamespace,
    pool_view::{PoolView, WorkerView, pool_meta},
    protocol::Leasing,
    replicas::forget_command,
    slot_state::{SlotCounts, SlotState},
    watching::Watching,
};

/// The page of the crate, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
