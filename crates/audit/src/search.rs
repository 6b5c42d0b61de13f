//! Where Ids that came again were seen first.

use frazil_id::Id;

use crate::verdict::{Place, Verdict};

/// Looks for the first sightings of duplicates while the sources are read once more: to remember
/// a place for every Id would take more than the Ids.
///
/// The set was exact, so an Id that came again was seen once before it did: whatever is found
/// there is the first sighting, and a source that cannot be read again is told by its absence.
#[derive(Clone, Debug)]
pub struct Search {
    /// By Id.
    wanted: Vec<Wanted>,
    missing: usize,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    id: Id,
    /// Where it was first seen again.
    before: Place,
    found: Option<Place>,
}

impl Search {
    /// For the duplicates that a verdict has kept.
    #[must_use]
    pub fn new(verdict: &Verdict) -> Self {
        let wanted = verdict.first_duplicates.iter();
        let mut wanted: Vec<Wanted> =
            wanted.map(|it| Wanted { id: it.id, before: it.again, found: None }).collect();
        wanted.sort_by_key(|wanted| (wanted.id, wanted.before));
        wanted.dedup_by_key(|wanted| wanted.id);
        let missing = wanted.len();
        Self { wanted, missing }
    }

    /// Takes an Id that is read once more.
    #[inline]
    pub fn see(&mut self, id: Id, place: Place) {
        let Ok(at) = self.wanted.binary_search_by_key(&id, |wanted| wanted.id) else { return };
        let wanted = &mut self.wanted[at];
        if wanted.found.is_none() && place < wanted.before {
            wanted.found = Some(place);
            self.missing -= 1;
        }
    }

    /// Whether a source may have what is missing: there is none behind the last duplicate.
    #[must_use]
    pub fn needs(&self, source: usize) -> bool {
        let mut missing = self.wanted.iter().filter(|wanted| wanted.found.is_none());
        missing.any(|wanted| source <= wanted.before.source)
    }

    /// Whether every first sighting was found.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.missing == 0
    }

    /// Writes what was found into the verdict.
    pub fn tell(&self, verdict: &mut Verdict) {
        for duplicate in &mut verdict.first_duplicates {
            let at = self.wanted.binary_search_by_key(&duplicate.id, |wanted| wanted.id);
            duplicate.first = at.ok().and_then(|at| self.wanted[at].found);
        }
    }
}
