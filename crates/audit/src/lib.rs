//! Which Ids were seen, exactly.
//!
//! An [`IdSet`] knows every Id that was ever put into it and forgets none, so an Id that comes
//! again after an hour and a billion others is still told. It is small because Ids come in runs:
//! the Ids of one worker and tick are mostly one stretch of the sequence, which takes four bytes.
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
//! | know whether an Id was there before | [`IdSet`] |
//! | count the Ids of each worker, and find the fullest tick | [`IdSet::census`], [`Census`] |
//!
//! Nothing here reads files or clocks: Ids are arguments.

mod cell;
mod census;
mod id_set;
mod page;
mod pages;
mod shape;
mod slots;

pub use self::census::{Busiest, Census, WorkerCount};
pub use self::id_set::IdSet;
