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
//! | lead, or follow who leads | [`election`] |
//! | spread jobs over nodes, each led by one | [`processor`] |
//! | open a store by its URL | [`open`](fn@open), [`StoreUrl`] |
//! | refuse the late writes of a former leader | [`fence`] |
//! | write a store | [`Store`], and the suite `conformance` |
//! | know what a store promises | [`Guarantees`] |
//! | share, count or hurt a store | [`Prefixed`], [`Metered`], [`Faulty`] |

mod anchor;
pub mod choose;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod election;
mod error;
pub mod fence;
mod finding;
mod guarantees;
pub mod keeper;
pub mod mend;
#[doc(hidden)]
pub mod mutant;
mod namespace;
mod neighbours;
mod nonce;
mod open;
mod panicked;
pub mod processor;
mod record;
pub mod rules;
mod slot;
mod standing;
mod store;
pub mod stores;
mod tally;
pub mod time;
mod timing;
mod url;
mod watching;
mod wrappers;

pub use self::error::{Error, ErrorKind};
pub use self::finding::{Finding, Severity};
pub use self::guarantees::{Guarantees, Strength};
pub use self::namespace::{BadNamespace, Namespace};
pub use self::neighbours::{Neighbour, neighbours, warn_of_neighbours};
pub use self::nonce::{BadNonce, Nonce};
pub use self::open::{look, open};
pub use self::record::{FORMAT, Meta, Record, Token, UnixMs, Version, Versioned};
pub use self::slot::{BadName, Group, Slot};
pub use self::standing::Standing;
pub use self::store::{
    Acquired, Announcer, Ask, Census, Changes, Choice, Claim, Entry, Extended, Found, Guard, Loss,
    Presence, Put, Released, Store, Tenure,
};
pub use self::tally::Tally;
pub use self::timing::{BadTiming, Timing};
pub use self::url::{BadUrl, PASSWORD_VARIABLE, Scheme, Secret, StoreUrl, duration};
pub use self::wrappers::{Act, Chances, Faults, Faulty, Metered, Operations, Outcome, Prefixed};
