//! Jobs that move through a rolling restart: the demonstration of `frazil-election`'s processor.
//!
//! Some nodes, all in this process and each with its own connection to the store, share some jobs, and
//! are restarted one after the other.
//!
//! | to | see |
//! |---|---|
//! | measure how long jobs are without a node | [`measure`] |
//! | draw them on a terminal as they move | [`show`] |
//!
//! A gap is the time from when a job has stopped on one node until it was started on another.

mod draw;
mod error;
mod journal;
mod live;
mod measured;
mod plan;
mod report;
mod stage;

pub use self::error::Error;
pub use self::live::show;
pub use self::measured::{Ended, measure};
pub use self::plan::Plan;
pub use self::report::{Gaps, PhaseReport, Report};

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
