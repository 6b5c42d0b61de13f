//! The difference between two lists of items.

use std::collections::BTreeSet;
use std::fmt;

/// What is gone from a list, and what is new in it.
#[derive(Debug)]
pub(crate) struct Difference<'a> {
    pub(crate) gone: Vec<&'a str>,
    pub(crate) new: Vec<&'a str>,
}

impl<'a> Difference<'a> {
    pub(crate) fn between(old: &'a str, new: &'a str) -> Self {
        let lines = |text: &'a str| text.lines().collect::<BTreeSet<_>>();
        let (old, new) = (lines(old), lines(new));
        Self {
            gone: old.difference(&new).copied().collect(),
            new: new.difference(&old).copied().collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.new.is_empty()
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.gone.iter().try_for_each(|line| writeln!(f, "  - {line}"))?;
        self.new.iter().try_for_each(|line| writeln!(f, "  + {line}"))
    }
}
