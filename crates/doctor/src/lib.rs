//! Checks of everything that a node needs, with what repairs what is wrong.
//!
//! A check looks and gives a [`Finding`], or several; it never writes, neither to the store nor to the
//! disk. `frazil doctor` prints them.
//!
//! | to check | call |
//! |---|---|
//! | the clock, and the layout's range of times | [`clock()`], [`store_clock`], [`lifetime()`] |
//! | whether durations go together | [`NodeSettings::clash`], [`timing()`] |
//! | the store: login, directory, answers, promises | [`login()`], [`directory()`], [`store()`], [`guarantees`] |
//! | the namespace and its workers | [`namespace()`], [`pool()`] |
//! | the machine: ports (feature `ports`) and open files | `ports`, [`descriptors()`] |
//! | a server that runs | [`server()`] |
//! | what to do about an error of a store | [`Advised`] |
//!
//! [`within_limit`] bounds the time that one takes. The files that a server reads are checked by
//! `frazil-server`, which knows what they mean.

mod advice;
mod check;
mod clock;
mod descriptors;
mod directory;
mod finding;
mod lifetime;
mod login;
mod namespace;
mod node_settings;
mod pool;
#[cfg(feature = "ports")]
mod port;
mod server;
mod store;
mod timing;

pub use self::advice::{Advised, next_step_after};
pub use self::check::{Check, apart, within_limit};
pub use self::clock::{clock, store_clock};
pub use self::descriptors::{DescriptorNeeds, descriptors};
pub use self::directory::directory;
pub use self::finding::{Finding, Status};
pub use self::lifetime::lifetime;
pub use self::login::login;
pub use self::namespace::namespace;
pub use self::node_settings::NodeSettings;
pub use self::pool::pool;
#[cfg(feature = "ports")]
pub use self::port::{LISTENERS, Listening, ports};
pub use self::server::{Asked, server};
pub use self::store::{guarantees, store};
pub use self::timing::{flag_for, timing};

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
