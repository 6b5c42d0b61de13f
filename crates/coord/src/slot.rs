//! A slot has a record: numbered workers, named elections and named scopes, which can be leased, and the
//! API keys, which cannot.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of slot. Each kind has its own name space inside a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Group {
    /// Worker numbers.
    Workers,
    /// Elections.
    Elections,
    /// Strict scopes.
    Scopes,
    /// The list of API keys. Nobody holds it: operators write it, and nodes read it.
    Keys,
}

impl Group {
    /// Every kind.
    pub const ALL: &'static [Self] = &[Self::Workers, Self::Elections, Self::Scopes, Self::Keys];

    /// The letter that stands for the kind in keys and paths.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Workers => "w",
            Self::Elections => "e",
            Self::Scopes => "s",
            Self::Keys => "k",
        }
    }
}

/// One leasable record: a kind and a name. The name of a worker is its number in decimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    group: Group,
    name: String,
}

/// Why a text cannot name a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(String);

/// Names are parts of keys, paths and file names; every store takes this many bytes.
const NAME_MAX: usize = 128;

impl Slot {
    /// The slot of a worker number.
    #[must_use]
    pub fn worker(number: u32) -> Self {
        Self { group: Group::Workers, name: number.to_string() }
    }

    /// A slot by name: letters, digits, `.`, `_`, `-` and `:`, at most 128 of them.
    ///
    /// # Errors
    /// If the name has other characters, is empty or too long, or is no number for a worker.
    pub fn named(group: Group, name: &str) -> Result<Self, NameError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
        let is_name = (1..=NAME_MAX).contains(&name.len())
            && name.chars().all(fits)
            && !name.starts_with('.');
        let is_number = || name.parse::<u32>().is_ok_and(|number| number.to_string() == name);
        if is_name && (group != Group::Workers || is_number()) {
            Ok(Self { group, name: name.to_owned() })
        } else {
            Err(NameError::of(name))
        }
    }

    /// The slot of the namespace's API keys: one record has all of them, so that one
    /// compare-and-swap changes the list.
    #[must_use]
    pub fn api_keys() -> Self {
        Self { group: Group::Keys, name: "all".to_owned() }
    }

    /// The kind.
    #[must_use]
    pub const fn group(&self) -> Group {
        self.group
    }

    /// The name within the kind.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The worker number, if it is a worker's slot.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match self.group {
            Group::Workers => self.name.parse().ok(),
            _ => None,
        }
    }
}

impl NameError {
    /// That this text cannot name a slot.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self(name.chars().take(NAME_MAX).collect())
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group.letter(), self.name)
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a valid name: use 1 to {NAME_MAX} letters, digits, '.', '_', '-' or ':', and a \
             plain number for a worker",
            self.0
        )
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_its_directory_or_key_is_refused() {
        for name in ["", ".", "..", "a/b", "a b", "a{b}", "caf\u{e9}", ".hidden", "x\n"] {
            assert!(Slot::named(Group::Elections, name).is_err(), "{name:?}");
        }
        assert!(Slot::named(Group::Elections, &"x".repeat(NAME_MAX)).is_ok());
        assert!(Slot::named(Group::Elections, &"x".repeat(NAME_MAX + 1)).is_err());
    }

    #[test]
    fn a_worker_has_exactly_one_name() {
        for name in ["07", "+7", "-1", "4294967296", "seven"] {
            assert!(Slot::named(Group::Workers, name).is_err(), "{name:?}");
        }
        assert_eq!(Slot::named(Group::Workers, "7"), Ok(Slot::worker(7)));
        assert_eq!(Slot::worker(7).number(), Some(7));
        assert_eq!(Slot::worker(7).to_string(), "w/7");
    }
}
