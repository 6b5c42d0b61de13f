//! Judges the IDs of several sources.

use frazil_id::{Id, Layout, OutsideLayout};

use crate::id_set::IdSet;
use crate::order::Order;
use crate::verdict::{Duplicate, Outside, Place, SourceVerdict, Verdict};

/// Takes the IDs of one source after the other and tells what is wrong with them.
///
/// ```
/// use frazil_audit::{Auditor, Place};
/// use frazil_id::{Id, Layout};
///
/// let mut auditor = Auditor::new(&Layout::FRAZIL, 10);
/// auditor.source("monday").check(Id::from_u64(7), 1);
/// auditor.source("tuesday").check(Id::from_u64(7), 1);
/// let verdict = auditor.finish();
/// assert_eq!(verdict.duplicates, 1);
/// assert_eq!(verdict.first_duplicates[0].again, Place { source: 1, at: 1 });
/// ```
#[derive(Debug)]
pub struct Auditor {
    seen: IdSet,
    keep: usize,
    duplicates: u64,
    first_duplicates: Vec<Duplicate>,
    outside: u64,
    first_outside: Vec<Outside>,
    sources: Vec<SourceVerdict>,
    ends: Option<(Id, Id)>,
}

impl Auditor {
    /// An audit of IDs of a layout, which keeps the first findings of each kind, so many.
    #[must_use]
    pub fn new(layout: &Layout, keep: usize) -> Self {
        Self {
            seen: IdSet::new(layout),
            keep,
            duplicates: 0,
            first_duplicates: Vec::new(),
            outside: 0,
            first_outside: Vec::new(),
            sources: Vec::new(),
            ends: None,
        }
    }

    /// Begins with the next source.
    pub fn source(&mut self, name: impl Into<String>) -> Source<'_> {
        let number = self.sources.len();
        Source { auditor: self, number, name: name.into(), ids: 0, order: Order::default() }
    }

    /// Different IDs so far.
    #[must_use]
    pub const fn distinct(&self) -> u64 {
        self.seen.len()
    }

    /// Ends the audit.
    #[must_use]
    pub fn finish(self) -> Verdict {
        Verdict {
            layout: *self.seen.layout(),
            checked: self.sources.iter().map(|source| source.ids).sum(),
            distinct: self.seen.len(),
            duplicates: self.duplicates,
            first_duplicates: self.first_duplicates,
            outside: self.outside,
            first_outside: self.first_outside,
            sources: self.sources,
            ends: self.ends,
            census: self.seen.census(),
            memory_bytes: self.seen.memory_bytes(),
        }
    }

    #[cold]
    fn note_duplicate(&mut self, id: Id, again: Place) {
        self.duplicates += 1;
        if self.first_duplicates.len() < self.keep {
            self.first_duplicates.push(Duplicate { id, first: None, again });
        }
    }

    #[cold]
    fn note_outside(&mut self, id: Id, place: Place, why: OutsideLayout) {
        self.outside += 1;
        if self.first_outside.len() < self.keep {
            self.first_outside.push(Outside { id, place, why });
        }
    }
}

/// A source whose IDs are taken. What was taken counts once this is dropped.
#[derive(Debug)]
pub struct Source<'a> {
    auditor: &'a mut Auditor,
    number: usize,
    name: String,
    ids: u64,
    order: Order,
}

impl Source<'_> {
    /// Takes the next ID, with its line or whatever counts the positions of the source.
    #[inline]
    pub fn check(&mut self, id: Id, at: u64) {
        self.ids += 1;
        self.order.check(id, at);
        match self.auditor.seen.insert(id) {
            Ok(true) => {
                let (lowest, highest) = self.auditor.ends.unwrap_or((id, id));
                self.auditor.ends = Some((lowest.min(id), highest.max(id)));
            }
            Ok(false) => {
                self.auditor.note_duplicate(id, Place { source: self.number, at });
            }
            Err(why) => {
                self.auditor.note_outside(id, Place { source: self.number, at }, why);
            }
        }
    }

    /// The IDs that were taken from it.
    #[must_use]
    pub const fn ids(&self) -> u64 {
        self.ids
    }
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        self.auditor.sources.push(SourceVerdict { name, ids: self.ids, order: self.order });
    }
}
