//! Leases with a horizon over files, Redis, etcd and ZooKeeper.
//!
//! A [`Slot`] is a durable [`Record`] that one holder at a time may extend, and that outlives
//! every lease. A new holder starts above the horizon of all before it, so the times that
//! different holders use are disjoint whatever clocks, schedulers and networks do.
//!
//! | to | see |
//! |---|---|
//! | read every rule in one place | [`rules`] |
//! | keep a worker leased | [`keeper::Keeper`] |
//! | open a store by its URL | [`open`](fn@open), [`StoreUrl`] |
//! | write a store | [`Store`], and the suite in `frazil-conformance` |
//! | know what a store promises | [`Guarantees`] |
//! | share or count a store | [`Prefixed`], [`Metered`] |

pub mod choose;
mod clock_step;
mod error;
mod failure;
mod finding;
mod guarantees;
pub mod keeper;
mod lease;
mod namespace;
mod neighbours;
mod new_namespace;
mod nonce;
mod open;
pub mod protocol;
mod record;
pub mod repair;
mod replicas;
pub mod rules;
mod slot;
mod slot_state;
mod store;
pub mod stores;
mod sync;
pub mod time;
mod timing;
mod url;
mod watching;
mod wrappers;
pub mod wrong_times;

pub use self::error::{Error, ErrorKind};
pub use self::finding::{Finding, Severity};
pub use self::guarantees::{Guarantees, Strength};
pub use self::lease::{
    Acquired, Ask, Census, Choice, Claim, Extended, Forgotten, Guard, Loss, Released, Settling,
    Tenure,
};
pub use self::namespace::{Namespace, NamespaceError, etcd_prefix};
pub use self::neighbours::{Neighbour, neighbours, warn_of_neighbours};
pub use self::new_namespace::{FirstUse, NewNamespace};
pub use self::nonce::{Nonce, NonceError};
pub use self::open::{look, open};
pub use self::protocol::Leasing;
pub use self::record::{FORMAT, Meta, Record, Token, UnixMs, Version, Versioned};
pub use self::replicas::{ForgottenReplica, forget_command};
pub use self::slot::{Group, NameError, Slot};
pub use self::slot_state::{SlotCounts, SlotState};
pub use self::store::{
    Act, Announcer, Change, Changes, Commit, Committed, Entry, Found, FreeSlots, History, Look,
    Presence, Present, Put, Stay, Store, Wanted, Watched, Written,
};
pub use self::timing::{Timing, TimingError};
pub use self::url::{PASSWORD_VARIABLE, PemFiles, Scheme, Secret, StoreUrl, UrlError, duration};
pub use self::watching::Watching;
pub use self::wrappers::{Metered, Operations, Outcome, Prefixed};
