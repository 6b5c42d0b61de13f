//! Which mutant this process is, if any.

use std::sync::OnceLock;

use frazil::coord::mutant::VARIABLE;

use super::Mutant;

/// The mutants of this crate.
pub const NAMES: &[&str] = &["json-number"];

/// Whether this process is that mutant. The variable is read once.
pub(crate) fn is(mutant: Mutant) -> bool {
    static CHOSEN: OnceLock<Option<Mutant>> = OnceLock::new();
    *CHOSEN.get_or_init(|| named(&std::env::var(VARIABLE).ok()?)) == Some(mutant)
}

fn named(name: &str) -> Option<Mutant> {
    (name == "json-number").then_some(Mutant::JsonNumber)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_mutant() {
        assert!(NAMES.iter().all(|name| named(name).is_some()));
        assert_eq!(named("no-such"), None);
    }
}
