//! The number of workers of a namespace in each state.

use std::fmt;

use serde::Serialize;

use crate::lease::Claim;
use crate::record::Meta;
use crate::standing::Standing;
use crate::store::{Entry, History};

/// The workers of a namespace's range, counted by what they are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Nobody ever had it. A quarantine covers these too.
    pub never_used: u32,
    /// See [`Standing::Held`].
    pub held: u32,
    /// See [`Standing::Free`].
    pub free: u32,
    /// See [`Standing::Blocked`].
    pub blocked: u32,
    /// See [`Standing::Quarantined`].
    pub quarantined: u32,
    /// See [`Standing::Poisoned`].
    pub poisoned: u32,
    /// See [`Standing::Lost`].
    pub lost: u32,
}

impl Tally {
    /// Counts the entries of a namespace as a claim would see them; see [`Claim::to_judge`].
    #[must_use]
    pub fn of(entries: &[Entry], meta: &Meta, judge: &Claim, history: &History) -> Self {
        let range = meta.workers();
        let mut tally = Self::default();
        let inside = entries
            .iter()
            .filter(|entry| entry.slot.number().is_some_and(|number| range.contains(&number)));
        for entry in inside {
            *tally.place(Standing::of(entry, judge, history)) += 1;
        }
        tally.never_used = capacity(meta).saturating_sub(tally.capacity());
        tally
    }

    /// How many workers there are.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.never_used + self.held + self.free + self.unusable()
    }

    /// How many workers nobody holds and nobody can take now, for whatever reason.
    #[must_use]
    pub const fn unusable(&self) -> u32 {
        self.blocked + self.quarantined + self.poisoned + self.lost
    }

    const fn place(&mut self, standing: Standing) -> &mut u32 {
        match standing {
            Standing::Held => &mut self.held,
            Standing::Free => &mut self.free,
            Standing::Blocked => &mut self.blocked,
            Standing::Quarantined => &mut self.quarantined,
            Standing::Poisoned => &mut self.poisoned,
            Standing::Lost => &mut self.lost,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { never_used, held, free, blocked, quarantined, poisoned, lost } = self;
        write!(
            f,
            "{held} held, {free} free, {blocked} blocked, {quarantined} quarantined, {poisoned} \
             poisoned, {lost} lost, {never_used} never used"
        )
    }
}

const fn capacity(meta: &Meta) -> u32 {
    meta.last_worker.saturating_sub(meta.first_worker).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nonce::Nonce;
    use crate::record::{FORMAT, Token, Version, Versioned};
    use crate::slot::Slot;
    use crate::store::{Found, Presence};

    #[test]
    fn only_workers_of_the_range_count_and_those_without_an_entry_were_never_used() {
        let meta = Meta {
            format: FORMAT,
            incarnation: Nonce::from_bits(1),
            layout: "layout".into(),
            first_worker: 2,
            last_worker: 9,
            window_ms: 60_000,
            quarantine: 0,
            token_floor: Token::default(),
            created: 1000,
        };
        let held = Presence::Held { expires_in: None };
        let entry = |number: u32, found: Found, presence: Presence| Entry {
            slot: Slot::worker(number),
            version: Version(1),
            found,
            presence,
        };
        let entries = [
            entry(1, Found::New, held),
            entry(2, Found::New, held),
            entry(3, Found::Lost, Presence::Free),
            entry(9, Found::New, Presence::Free),
        ];
        let judge = Claim::to_judge(&Versioned { version: Version(1), value: meta.clone() }, 5000);
        let tally = Tally::of(&entries, &meta, &judge, &History::default());
        let expected = Tally { never_used: 5, held: 1, free: 1, lost: 1, ..Tally::default() };
        assert_eq!((tally, tally.capacity(), tally.unusable()), (expected, 8, 1));
    }
}
