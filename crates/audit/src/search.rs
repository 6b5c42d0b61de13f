//! The search for where IDs that came again were seen first.

use frazil_id::Id;

use crate::verdict::{Place, Verdict};

/// Looks for the first sightings of duplicates while the sources are read once more: to remember
/// a place for every ID would take more than the IDs.
///
/// The set was exact, so an ID that came again was seen once before it did: whatever is found
/// there is the first sighting, and a source that cannot be read again is told by its absence.
#[derive(Clone, Debug)]
pub struct Search {
    /// By ID.
    wanted: Vec<Wanted>,
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
        Self { wanted }
    }

    /// Takes an ID that is read once more; whether it is a first sighting.
    #[inline]
    pub fn see(&mut self, id: Id, place: Place) -> bool {
        let Ok(at) = self.wanted.binary_search_by_key(&id, |wanted| wanted.id) else {
            return false;
        };
        let wanted = &mut self.wanted[at];
        let is_first = wanted.found.is_none() && place < wanted.before;
        if is_first {
            wanted.found = Some(place);
        }
        is_first
    }

    /// Whether a source may have what is missing: there is none behind the last duplicate.
    #[must_use]
    pub fn needs(&self, source: usize) -> bool {
        let mut missing = self.wanted.iter().filter(|wanted| wanted.found.is_none());
        missing.any(|wanted| source <= wanted.before.source)
    }

    /// Writes what was found into the verdict.
    pub fn tell(&self, verdict: &mut Verdict) {
        for duplicate in &mut verdict.first_duplicates {
            let at = self.wanted.binary_search_by_key(&duplicate.id, |wanted| wanted.id);
            duplicate.first = at.ok().and_then(|at| self.wanted[at].found);
        }
    }
}
