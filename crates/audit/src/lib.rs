//! An exact record of the IDs that were seen.
//!
//! An [`IdSet`] knows every ID that was ever put into it and forgets none, so an ID that comes
//! again after an hour and a billion others is still told. It is small because IDs come in runs:
//! the IDs of one worker and tick are mostly one stretch of the sequence, which takes four bytes.
//!
//! ```
//! use frazil_audit::IdSet;
//! use frazil_id::{Id, Layout};
//!
//! let mut seen = IdSet::new(&Layout::FRAZIL);
//! assert!(seen.insert(Id::from_u64(7))?);
//! assert!(!seen.insert(Id::from_u64(7))?);
//! # Ok::<(), frazil_id::OutsideLayout>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | know whether an ID was there before | [`IdSet`] |
//! | count the IDs of each worker, and find the fullest tick | [`IdSet::census`], [`Census`] |
//! | know whether a stream ascends | [`Order`] |
//! | judge several sources | [`Auditor`], [`Verdict`] |
//! | find where a duplicate was seen first | [`Search`] |
//! | read IDs out of files | [`reader`] |
//!
//! But for [`reader`] nothing here reads files, and nothing reads clocks: IDs are arguments.

mod auditor;
mod cell;
mod census;
mod id_set;
mod order;
mod page;
mod pages;
pub mod reader;
mod search;
mod shape;
mod slots;
mod verdict;

pub use self::auditor::{Auditor, Source};
pub use self::census::{Busiest, Census, WorkerCount};
pub use self::id_set::IdSet;
pub use self::order::{Break, Order, Sighting};
pub use self::search::Search;
pub use self::verdict::{Duplicate, Outside, Place, SourceVerdict, Verdict};

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
