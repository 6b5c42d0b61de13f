//! The state of a slot, for people who look.

use serde::Serialize;

use crate::lease::Claim;
use crate::rules::{Outlook, outlook};
use crate::store::{Entry, Found, History, Presence};

/// What a slot is good for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
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

impl Standing {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Held, Self::Free, Self::Blocked, Self::Quarantined, Self::Poisoned, Self::Lost];

    /// What an entry is good for, as a claim would see it; see [`Claim::to_judge`].
    #[must_use]
    pub fn of(entry: &Entry, judge: &Claim, history: &History) -> Self {
        match (&entry.presence, &entry.found, outlook(&entry.found, judge, history)) {
            (_, Found::Lost, _) => Self::Lost,
            (Presence::Held { .. }, _, _) => Self::Held,
            (_, _, Outlook::Passed | Outlook::Ahead) => Self::Free,
            (_, Found::Known(record), Outlook::Blocked { .. })
                if record.horizon < judge.quarantine =>
            {
                Self::Quarantined
            }
            (_, _, Outlook::Blocked { .. }) => Self::Blocked,
            (_, _, Outlook::Poisoned { .. }) => Self::Poisoned,
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
