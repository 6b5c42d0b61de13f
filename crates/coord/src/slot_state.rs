//! The state of a slot as an operator sees it, and the number of workers in each state.

use std::fmt;

use serde::Serialize;

use crate::lease::Claim;
use crate::record::Meta;
use crate::rules::{SlotAvailability, availability};
use crate::store::{Entry, Found, History, Presence};

/// What a slot is good for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SlotState {
    /// Somebody has it.
    Held,
    /// It can be taken.
    Free,
    /// Its last holder may still use it.
    Blocked,
    /// The namespace's quarantine covers it.
    Quarantined,
    /// Its horizon is further ahead than any correct holder can have put it.
    Poisoned,
    /// Its record is gone.
    Lost,
}

impl SlotState {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::Held, Self::Free, Self::Blocked, Self::Quarantined, Self::Poisoned, Self::Lost];

    /// What an entry is good for, as a claim would see it; see [`Claim::to_judge`].
    #[must_use]
    pub fn of(entry: &Entry, judge: &Claim, history: &History) -> Self {
        match (&entry.presence, &entry.found, availability(&entry.found, judge, history)) {
            (_, Found::Lost, _) => Self::Lost,
            (Presence::Held { .. }, _, _) => Self::Held,
            (_, _, SlotAvailability::Passed | SlotAvailability::Ahead) => Self::Free,
            (_, Found::Known(record), SlotAvailability::Blocked { .. })
                if record.horizon < judge.quarantine =>
            {
                Self::Quarantined
            }
            (_, _, SlotAvailability::Blocked { .. }) => Self::Blocked,
            (_, _, SlotAvailability::Poisoned { .. }) => Self::Poisoned,
        }
    }

    /// It in a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Free => "free",
            Self::Blocked => "blocked",
            Self::Quarantined => "quarantined",
            Self::Poisoned => "poisoned",
            Self::Lost => "lost",
        }
    }
}

/// The workers of a namespace's range, counted by what they are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct SlotCounts {
    /// Nobody ever had it. A quarantine covers these too.
    pub never_used: u32,
    /// See [`SlotState::Held`].
    pub held: u32,
    /// See [`SlotState::Free`].
    pub free: u32,
    /// See [`SlotState::Blocked`].
    pub blocked: u32,
    /// See [`SlotState::Quarantined`].
    pub quarantined: u32,
    /// See [`SlotState::Poisoned`].
    pub poisoned: u32,
    /// See [`SlotState::Lost`].
    pub lost: u32,
}

impl SlotCounts {
    /// Counts the entries of a namespace as a claim would see them; see [`Claim::to_judge`].
    #[must_use]
    pub fn of(entries: &[Entry], meta: &Meta, judge: &Claim, history: &History) -> Self {
        let range = meta.workers();
        let mut counts = Self::default();
        let inside = entries
            .iter()
            .filter(|entry| entry.slot.number().is_some_and(|number| range.contains(&number)));
        for entry in inside {
            *counts.of_state(SlotState::of(entry, judge, history)) += 1;
        }
        counts.never_used = capacity(meta).saturating_sub(counts.capacity());
        counts
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

    const fn of_state(&mut self, state: SlotState) -> &mut u32 {
        match state {
            SlotState::Held => &mut self.held,
            SlotState::Free => &mut self.free,
            SlotState::Blocked => &mut self.blocked,
            SlotState::Quarantined => &mut self.quarantined,
            SlotState::Poisoned => &mut self.poisoned,
            SlotState::Lost => &mut self.lost,
        }
    }
}

impl fmt::Display for SlotCounts {
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
        let counts = SlotCounts::of(&entries, &meta, &judge, &History::default());
        let expected =
            SlotCounts { never_used: 5, held: 1, free: 1, lost: 1, ..SlotCounts::default() };
        assert_eq!((counts, counts.capacity(), counts.unusable()), (expected, 8, 1));
    }
}
