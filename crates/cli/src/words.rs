//! Texts for people: those that all programs share, and the names of slots.

use std::fmt::{self, Display};

use frazil::coord::{Group, Slot};
pub(crate) use frazil_wire::printable;
pub(crate) use frazil_wire::words::{count, instant, span};

/// A slot by what it is.
pub(crate) struct Called<'a>(pub(crate) &'a Slot);

impl Display for Called<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.group() {
            Group::Workers => "worker",
            Group::Elections => "election",
            Group::Scopes => "scope",
            Group::Keys => "list of API keys",
            _ => "slot",
        };
        write!(f, "{kind} {}", self.0.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_so_that_flags_take_them() {
        for text in ["1500ms", "10s", "90s", "10m", "2h", "0s"] {
            let duration = frazil::coord::internal::duration(text).unwrap();
            assert_eq!(span(duration), text);
        }
    }
}
