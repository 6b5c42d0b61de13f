//! Unique, time-ordered 64-bit IDs.
//!
//! An [`Id`] is a `u64` whose bits a [`Layout`] explains: a time, a worker and a sequence. A
//! [`Generator`] issues the IDs of one worker, without locks and without ever lowering or
//! repeating one, whatever the clock does.
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use frazil_id::{Generator, Layout};
//!
//! let ids = Generator::system(&Layout::FRAZIL, 7)?;
//! let (a, b) = (ids.next()?, ids.next()?);
//! assert!(a < b);
//! assert_eq!(a.parts(&Layout::FRAZIL)?.worker, 7);
//! # }
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | describe the bits of an ID, or use a known scheme | [`Layout`] |
//! | take an ID apart, put one together, bound a time range | [`Id::parts`], [`Layout::encode`], [`Id::range`] |
//! | print and read IDs | [`Format`], [`Id::text`], [`Id::parse`] |
//! | keep IDs in a database | [`Id::to_i64`], and the features below |
//! | issue IDs | [`Generator`], [`Options`] |
//! | choose where time comes from | [`SystemClock`], [`TickerClock`], [`ManualClock`] |
//! | read every rule of issuing in one place | [`step`](fn@step) |
//!
//! The crate has no dependencies by default. Without the default feature `std` it is `no_std` (with
//! `alloc`) and offers what never waits. Features that add what they are called after:
//!
//! | feature | adds |
//! |---|---|
//! | `serde` | IDs and layouts as strings in any serde format |
//! | `sqlx` | IDs as `BIGINT` in PostgreSQL, MySQL and SQLite with sqlx 0.9 |
//! | `postgres-types` | IDs as `BIGINT` with `postgres` and `tokio-postgres` |
//! | `rusqlite` | IDs as `INTEGER` with rusqlite 0.41 |

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod batch;
mod clock;
mod generator;
mod id;
mod layout;
mod not_ready;
mod options;
mod parts;
pub mod rfc3339;
#[cfg(feature = "serde")]
mod serde;
mod signed;
#[cfg(feature = "std")]
mod sql;
mod step;
mod sync;
mod text;
mod ticket;
#[cfg(feature = "std")]
mod wait;

pub use self::batch::{Batch, Ids, Run, Runs};
pub use self::clock::{Clock, ManualClock, Moment, Reading, Timeline, Wait};
#[cfg(feature = "std")]
pub use self::clock::{SystemClock, TickerClock};
pub use self::generator::{Closed, Generator, Within};
pub use self::id::Id;
pub use self::layout::{Layout, LayoutError, PRESETS, Part};
pub use self::not_ready::NotReady;
pub use self::options::{Options, Rollback, StartError};
pub use self::parts::{EncodeError, OutsideLayout, Parts, TimeError};
pub use self::signed::SignedError;
pub use self::step::{Ask, Bounds, Granted, Rules, step};
pub use self::text::{Format, IdText, ParseIdError, UnknownFormat};

/// Runs what the README shows.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
