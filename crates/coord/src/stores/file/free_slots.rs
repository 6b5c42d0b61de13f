//! The search for free workers. It looks at all of them only where it must.

use std::collections::BTreeSet;

use super::shared::Shared;
use crate::choose::walk;
use crate::error::Failure;
use crate::slot::{Group, Slot};
use crate::store::{Entry, FreeSlots, Look, Presence, Wanted};

/// Numbers to look at before all are. One look costs microseconds, a look at a pool of 1,024
/// milliseconds; while a pool fills up, one claim in 65 needs all.
const GUESSES: u64 = 64;

impl Shared {
    pub(super) fn free_slots(&self, wanted: &Wanted, enough: usize) -> Result<FreeSlots, Failure> {
        self.enter()?;
        let meta = self.meta()?;
        let offer = |entries, is_complete, held| {
            let look = Look { meta, entries, ..Look::default() };
            Ok(FreeSlots { look, is_complete, held })
        };
        if let Some(served) = self.served(wanted.nonce)? {
            return offer(vec![served], false, 0);
        }
        let mut entries = Vec::new();
        let (mut held, mut passed) = (0, 0);
        for number in sample(wanted) {
            let slot = Slot::worker(number);
            if self.is_held(&slot)? {
                held += 1;
                continue;
            }
            let (version, found) = self.cell(&slot).find()?;
            passed += usize::from(found.has_passed(wanted.now));
            entries.push(Entry { slot, version, found, presence: Presence::Free });
            if passed == enough {
                break;
            }
        }
        match passed {
            0 => offer(self.list(Group::Workers)?, true, 0),
            _ => offer(entries, false, held),
        }
    }
}

/// The favourite, and numbers that follow from the nonce.
fn sample(wanted: &Wanted) -> Vec<u32> {
    let range = wanted.first..=wanted.last;
    if range.is_empty() {
        return Vec::new();
    }
    let size = u64::from(wanted.last - wanted.first) + 1;
    let (start, step) = walk(wanted);
    let guess = |index: u64| {
        let offset = (start + step * index) % size;
        wanted.first + u32::try_from(offset).expect("less than the size of the range")
    };
    let guesses = (0..size.min(GUESSES)).map(guess);
    let favourite = wanted.favourite.filter(|number| range.contains(number));
    let mut seen = BTreeSet::new();
    favourite.into_iter().chain(guesses).filter(|number| seen.insert(*number)).collect()
}
