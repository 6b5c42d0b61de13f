//! The verdict of an audit.

use frazil_id::{Id, Layout, OutsideLayout};

use crate::census::Census;
use crate::order::Order;

/// Where an ID was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The source's number, from 0, in the order in which the sources were read.
    pub source: usize,
    /// The line, or whatever counts the positions of the source.
    pub at: u64,
}

/// An ID that came again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Duplicate {
    /// The ID.
    pub id: Id,
    /// Where it was seen first, once a [`Search`](crate::Search) has found it.
    pub first: Option<Place>,
    /// Where it was seen again.
    pub again: Place,
}

/// A number that is no ID of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outside {
    /// The number.
    pub id: Id,
    /// Where it was seen.
    pub place: Place,
    /// Why it is not one.
    pub why: OutsideLayout,
}

/// What one source had.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceVerdict {
    /// Its name.
    pub name: String,
    /// The IDs that were read from it, those outside the layout included.
    pub ids: u64,
    /// Whether they ascend.
    pub order: Order,
}

/// What an audit found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verdict {
    /// The layout.
    pub layout: Layout,
    /// All IDs that were read.
    pub checked: u64,
    /// Different IDs of the layout.
    pub distinct: u64,
    /// How often an ID came that was there before.
    pub duplicates: u64,
    /// The first of those, as many as the auditor keeps.
    pub first_duplicates: Vec<Duplicate>,
    /// How many are no IDs of the layout. They are not looked at any further.
    pub outside: u64,
    /// The first of those, as many as the auditor keeps.
    pub first_outside: Vec<Outside>,
    /// Each source.
    pub sources: Vec<SourceVerdict>,
    /// The lowest and the highest ID of the layout: they have the first and the last time.
    pub ends: Option<(Id, Id)>,
    /// The IDs of each worker, and the fullest tick.
    pub census: Census,
    /// What the set of IDs took.
    pub memory_bytes: usize,
}

impl Verdict {
    /// How often an ID was not above the one before it in the same source.
    #[must_use]
    pub fn order_breaks(&self) -> u64 {
        self.sources.iter().map(|source| source.order.breaks()).sum()
    }

    /// Whether every ID is of the layout and came once.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.duplicates == 0 && self.outside == 0
    }
}
